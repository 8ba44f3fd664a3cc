#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/block_cut.h"
#include "common/checkpoint/shard_file.h"
#include "common/clock.h"
#include "common/partition_plan.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// Gathers the cuts of a shard's blocks after one step, writes them as this
// shard's file of that checkpoint on a thread of its own, and tells the result.
// Training waits only while a block's optimizer state is copied. One file is
// written and one waits; a third cut meanwhile is given up, and told.
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
  };

  explicit Checkpointer(Options options);
  ~Checkpointer() { Finish(); }

  // Ends the thread with the file that is being written; what waits is given
  // up, and cuts that come later are dropped. For its owner's thread.
  void Finish();

  // ParameterShard::Options::on_checkpoint; under the block's lock.
  void Take(const BlockCut& cut);

 private:
  struct Image {
    Block block;
    SharedBuffer weights;
    std::vector<SharedBuffer> state;
  };
  struct Cut {
    std::vector<Image> images;
    int64_t pause_micros = 0;
  };

  Image Copy(const BlockCut& cut) const;
  void Run();
  Written Write(int64_t step, const Cut& cut) const;

  const Options options_;

  absl::Mutex mu_;
  std::map<int64_t, Cut> open_ ABSL_GUARDED_BY(mu_);  // blocks are missing
  std::vector<Written> given_up_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<std::pair<int64_t, Cut>> waiting_ ABSL_GUARDED_BY(mu_);
  bool closing_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace tributary
