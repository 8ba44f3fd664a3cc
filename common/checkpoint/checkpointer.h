// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/checkpoint/block_cut.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/checkpoint/snapshot_collector.h"
#include "common/host/runtime.h"

namespace tributary {

// Writes a file of a checkpoint below `directory`, and creates the folders for
// it. Errors as OpenCheckpointFolder and WriteShardFile.
absl::StatusOr<v1::CheckpointFile> WriteCheckpointFile(
    const std::string& directory, const ShardFileHeader& header,
    absl::Span<const BlockImage> blocks,
    const std::function<bool()>& cancelled);

// Collects the snapshots of a shard's blocks after one step
// (SnapshotCollector), writes them as this shard's file of the checkpoint on
// its own thread, and reports the result. Training waits only while a block's
// optimizer state is copied. Results are reported in the order of steps.
class Checkpointer {
 public:
  using Written = WrittenSnapshot;
  struct Options {
    std::string directory;  // for the job's checkpoints
    ShardFileSeries series;
    size_t num_blocks = 0;  // of this shard; at least 1
    const Clock* clock = &Clock::Real();
    std::function<void(const Written&)> on_written;  // on the writing thread
    // How long Finish waits for a disk that does not respond.
    absl::Duration finish_timeout = absl::Seconds(5);
    // Writes a file to disk; tests replace it.
    std::function<decltype(WriteCheckpointFile)> write = WriteCheckpointFile;
  };

  explicit Checkpointer(Options options);
  ~Checkpointer() { Finish(); }

  // Cancels the file being written and drops the waiting one. Later snapshots
  // are ignored, and nothing more is reported. Returns once the thread has
  // ended. If the disk still blocks the thread after the timeout, the thread is
  // detached and ends when the disk responds.
  void Finish();

  // For ShardCallbacks::on_checkpoint; called under the block's lock.
  void Take(const BlockCut& cut);
  // As in SnapshotCollector.
  void SetBest(int64_t step);

 private:
  class Writer;

  const std::shared_ptr<Writer> writer_;  // shared with the thread
  std::optional<Thread> thread_;          // until Finish
};

}  // namespace tributary
