// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/block_cut.h"
#include "common/checkpoint/files/shard_file.h"

namespace tributary {

// A copy of one block after a step. The weights are shared with the block,
// which writes its next version elsewhere.
struct BlockSnapshot {
  explicit BlockSnapshot(const BlockCut& cut);

  Block block;
  int64_t skipped_steps = 0;
  SharedBuffer weights;
  std::vector<SharedBuffer> state;  // in the order of the state names
};

// The snapshots of all blocks of a shard after the same step.
struct ShardSnapshot {
  int64_t step = 0;
  std::vector<BlockSnapshot> blocks;  // in the shard's order
  int64_t pause_micros = 0;           // time to copy, summed over blocks

  // How many of the steps changed nothing.
  int64_t skipped_steps() const {
    return blocks.empty() ? 0 : blocks.front().skipped_steps;
  }
  // The blocks for WriteShardFile, which refer to this snapshot.
  std::vector<BlockImage> Images() const;
};

// The result for one step's file of a checkpoint.
struct WrittenSnapshot {
  int64_t step = 0;
  absl::StatusOr<v1::CheckpointFile> file;
  double pause_seconds = 0;  // time to copy, summed over blocks
  double write_seconds = 0;
};

// Collects the snapshots of a shard's blocks and decides which steps are
// written. A step is complete when all its blocks have been added. At most two
// complete steps are kept, including the one that is being written, since a
// slow disk must not fill the memory. A later step replaces the second one: the
// first is being written or will be next, and a job's last step must be
// written. The step of the best weights so far is kept beside these two. Not
// thread-safe: its owner locks.
class SnapshotCollector {
 public:
  explicit SnapshotCollector(size_t num_blocks) : num_blocks_(num_blocks) {}

  // Blocks come in any order, each once per step. `pause_micros`: the time that
  // it took to copy the block.
  void Add(int64_t step, BlockSnapshot block, int64_t pause_micros);

  // This step has the best weights so far: no later step replaces it, until
  // another one is the best.
  void SetBest(int64_t step) { best_ = step; }

  // Whether a step waits to be written.
  bool due() const { return !waiting_.empty(); }
  struct Work {
    std::vector<WrittenSnapshot> failed;  // earlier steps: report them first
    ShardSnapshot snapshot;               // then write this one
  };
  // Requires due(). The writer is busy until Written.
  Work Take();
  void Written() { writing_ = false; }

 private:
  static constexpr size_t kMostKept = 2;  // besides the best

  bool full() const;
  // Drops the last waiting step that is not the best: `step` takes its place.
  void GiveUpFor(int64_t step);

  const size_t num_blocks_;                // of the shard; at least 1
  std::map<int64_t, ShardSnapshot> open_;  // [step], some blocks missing
  std::deque<ShardSnapshot> waiting_;      // in the order of steps
  bool writing_ = false;
  int64_t best_ = 0;  // the step of the best weights; 0: none
  // Results of steps that later steps replaced, in the order of steps.
  std::vector<WrittenSnapshot> given_up_;
};

}  // namespace tributary
