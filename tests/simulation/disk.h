#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/partition_plan.h"
#include "tests/simulation/model.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary::simulation {

// One block of one server after a step.
struct BlockCopy {
  Block block;
  std::vector<float> weights;
  std::vector<std::vector<float>> state;
};

// A server's file of a checkpoint.
struct ShardImage {
  uint64_t job_id = 0;
  uint64_t plan_epoch = 0;
  int64_t step = 0;
  int shard = 0;
  int num_shards = 0;
  std::vector<BlockCopy> blocks;
};

// A whole checkpoint, put together.
struct WholeState {
  int64_t step = 0;
  Tensors weights;
  std::vector<Tensors> state;
};

// The folder of checkpoints as every process sees it: files appear whole or not
// at all (common/files/atomic_file.h), a checkpoint exists once its manifest
// does.
class Disk {
 public:
  static std::string FolderName(int64_t step);

  // ResourceExhausted while it is full.
  absl::StatusOr<v1::CheckpointFile> WriteShard(const ShardImage& image);
  absl::Status WriteManifest(const v1::CheckpointManifest& manifest);
  void Prune(int keep);
  void RemoveIncomplete(const std::string& folder) {
    const auto found = folders_.find(folder);
    if (found == folders_.end() || found->second.manifest) return;
    folders_.erase(found);
  }
  // As common/checkpoint's RevokeManifest.
  void Revoke(const std::string& folder) { folders_[folder].manifest.reset(); }
  // As common/checkpoint's OlderWholeCheckpoint: its step.
  std::optional<int64_t> OlderWhole(int64_t from_step,
                                    int64_t below_step) const;
  // A bit of a file of the newest checkpoint turns over. False: there is none.
  bool DamageNewest();
  bool damaged() const { return damaged_; }  // ever
  // As common/checkpoint's RemoveCheckpointsAfter.
  void RemoveAfter(int64_t step) {
    folders_.erase(folders_.upper_bound(FolderName(step)), folders_.end());
  }

  // NotFound, DataLoss: it is no checkpoint, or a file is missing, is of
  // another step or plan or does not match its checksum. All servers together
  // compare as much in the product (common/checkpoint/restore.h); here each
  // does.
  absl::StatusOr<WholeState> Read(const std::string& folder,
                                  const ParameterSpecs& parameters,
                                  size_t num_states) const;
  std::optional<int64_t> NewestStep() const;

  void set_full(bool full) { full_ = full; }
  bool full() const { return full_; }

 private:
  struct Folder {
    std::map<std::string, ShardImage> files;
    std::optional<v1::CheckpointManifest> manifest;
  };
  // Its files are there, of its step and plan, and match their checksums.
  static absl::Status Check(const std::string& name, const Folder& folder);
  std::map<std::string, Folder> folders_;  // in the order of steps
  bool full_ = false;
  bool damaged_ = false;
};

}  // namespace tributary::simulation
