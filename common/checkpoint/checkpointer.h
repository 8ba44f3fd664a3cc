#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/checkpoint/block_cut.h"
#include "common/checkpoint/shard_file.h"
#include "common/plan/partition_plan.h"

namespace tributary {

// Gathers the cuts of a shard's blocks after one step, writes them as this
// shard's file of that checkpoint on a thread of its own, and tells the result.
// Training waits only while a block's optimizer state is copied. One file is
// written and one waits; a third cut meanwhile is given up, and told. Results
// are told in the order of steps.
class Checkpointer {
 public:
  // What became of one step's file.
  struct Written {
    int64_t step = 0;
    absl::StatusOr<v1::CheckpointFile> file;
    double pause_seconds = 0;  // copying, all blocks together
    double write_seconds = 0;
  };
  struct Options {
    std::string directory;   // of the job's checkpoints
    ShardFileHeader header;  // step is filled in
    size_t num_blocks = 0;   // of this shard, at least 1
    const Clock* clock = &Clock::Real();
    std::function<void(const Written&)> on_written;  // on the thread
    // How long Finish waits for a disk that does not answer.
    absl::Duration finish_timeout = absl::Seconds(5);
    // Tests replace the disk.
    std::function<decltype(WriteShardFile)> write = WriteShardFile;
  };

  explicit Checkpointer(Options options);
  ~Checkpointer() { Finish(); }

  // Gives up the file that is being written and what waits; cuts that come
  // later are dropped, and nothing is told any more. Returns once the thread
  // has ended. A thread that the disk still holds after the timeout is left
  // behind: it ends with the disk's answer.
  void Finish();

  // ParameterShard::Options::on_checkpoint; under the block's lock.
  void Take(const BlockCut& cut);

 private:
  struct Image;
  struct Cut;
  class Writer;

  const std::shared_ptr<Writer> writer_;  // the thread holds it, too
  std::thread thread_;
};

}  // namespace tributary
