// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/checkpoint/snapshot_collector.h"
#include "tests/simulation/job/model.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary::simulation {

// A whole checkpoint, assembled.
struct WholeState {
  int64_t step = 0;
  int64_t skipped_steps = 0;
  Tensors weights;
  std::vector<Tensors> state;

  // Copies the values of a block out, for ParameterShard::Restore.
  void CopyOut(const Block& block, float* weights_out,
               const std::vector<float*>& state_out) const;
};

// The checkpoint directory as every process sees it. Files appear completely or
// not at all (common/files/atomic_file.h), and a checkpoint exists once its
// manifest does.
class Disk {
 public:
  static std::string FolderName(int64_t step);

  // Writes the file of a shard or a residual. ResourceExhausted: the disk is
  // full.
  absl::StatusOr<v1::CheckpointFile> WriteShard(
      const ShardFileHeader& header, absl::Span<const BlockImage> images);
  absl::Status WriteManifest(const v1::CheckpointManifest& manifest);
  void Prune(int keep);
  void RemoveIncomplete(const std::string& folder) {
    const auto found = folders_.find(folder.substr(folder.rfind('/') + 1));
    if (found == folders_.end() || found->second.manifest) return;
    folders_.erase(found);
  }
  // Does what RevokeManifest in common/checkpoint does.
  void Revoke(const std::string& folder) { folders_[folder].manifest.reset(); }
  // Does what OlderWholeCheckpoint in common/checkpoint does, but returns a
  // step.
  std::optional<int64_t> OlderWhole(int64_t from_step,
                                    int64_t below_step) const;
  // Changes a value in a file of the newest checkpoint. Returns false if there
  // is no checkpoint.
  bool DamageNewest();
  bool damaged() const { return damaged_; }  // at any time so far
  // Does what RemoveCheckpointsAfter in common/checkpoint does.
  void RemoveAfter(int64_t step) {
    folders_.erase(folders_.upper_bound(FolderName(step)), folders_.end());
  }

  // NotFound, DataLoss: it is not a checkpoint, or a file is missing, belongs
  // to another step or plan, or does not match its checksum. In the product all
  // servers share the comparison of the checksums
  // (common/checkpoint/restore.h); here each server compares all of them except
  // those of residuals.
  absl::StatusOr<WholeState> Read(const std::string& folder,
                                  const ParameterSpecs& parameters,
                                  size_t num_states) const;
  // Fills the residuals of a rank, by parameter. Errors as Read.
  absl::Status ReadResidual(const std::string& folder, int rank,
                            absl::Span<float* const> residuals) const;
  std::optional<int64_t> NewestStep() const;

  void set_full(bool full) { full_ = full; }
  bool full() const { return full_; }

 private:
  struct File {
    ShardFileHeader header;
    std::vector<BlockSnapshot> blocks;
  };
  struct Folder {
    std::map<std::string, File> files;
    std::optional<v1::CheckpointManifest> manifest;
  };
  static uint32_t ChecksumOf(const File& file);
  using NamedFiles = google::protobuf::RepeatedPtrField<v1::CheckpointFile>;
  // NotFound: there is no such checkpoint.
  absl::StatusOr<const Folder*> Find(const std::string& name) const;
  // Checks that these files of a checkpoint exist, belong to its step and plan
  // and match their checksums.
  static absl::Status Check(const std::string& name, const Folder& folder,
                            const NamedFiles& files);
  std::map<std::string, Folder> folders_;  // sorted by step
  bool full_ = false;
  bool damaged_ = false;
};

}  // namespace tributary::simulation
