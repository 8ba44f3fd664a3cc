#include "tests/simulation/job/disk.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/wire/crc32c.h"

namespace tributary::simulation {
namespace {

void CopyIn(const Block& block, const std::vector<float>& values,
            Tensors* tensors) {
  for (const Slice& slice : block.slices) {
    std::copy_n(values.begin() + slice.offset, slice.size(),
                (*tensors)[slice.parameter].begin() + slice.begin);
  }
}

uint32_t ChecksumOf(const ShardImage& image) {
  uint32_t crc = 0;
  for (const BlockCopy& block : image.blocks) {
    const size_t bytes = block.weights.size() * sizeof(float);
    crc = ExtendCrc32c(crc, block.weights.data(), bytes);
    for (const std::vector<float>& state : block.state) {
      crc = ExtendCrc32c(crc, state.data(), bytes);
    }
  }
  return crc;
}

}  // namespace

std::string Disk::FolderName(int64_t step) {
  return absl::StrFormat("step-%012d", step);
}

absl::StatusOr<v1::CheckpointFile> Disk::WriteShard(const ShardImage& image) {
  if (full_) return absl::ResourceExhaustedError("the disk is full");
  v1::CheckpointFile file;
  file.set_name(absl::StrCat("shard-", image.shard, "-of-", image.num_shards,
                             "-", image.job_id, "-e", image.plan_epoch));
  for (const BlockCopy& block : image.blocks) {
    const size_t bytes = block.weights.size() * sizeof(float);
    file.set_bytes(file.bytes() + bytes * (1 + block.state.size()));
  }
  file.set_crc32c(ChecksumOf(image));
  folders_[FolderName(image.step)].files[file.name()] = image;
  return file;
}

absl::Status Disk::WriteManifest(const v1::CheckpointManifest& manifest) {
  if (full_) return absl::ResourceExhaustedError("the disk is full");
  const auto found = folders_.find(FolderName(manifest.step()));
  if (found == folders_.end()) return absl::NotFoundError("no such folder");
  for (const v1::CheckpointFile& file : manifest.files()) {
    if (found->second.files.count(file.name()) == 0) {
      return absl::NotFoundError(absl::StrCat(file.name(), " is not there"));
    }
  }
  found->second.manifest = manifest;
  return absl::OkStatus();
}

void Disk::Prune(int keep) {
  int complete = 0;
  for (auto it = folders_.end(); it != folders_.begin();) {
    --it;
    if (it->second.manifest && ++complete <= keep) continue;
    if (complete == 0) continue;  // may still be written
    it = folders_.erase(it);
  }
}

absl::Status Disk::Check(const std::string& name, const Folder& folder) {
  for (const v1::CheckpointFile& file : folder.manifest->files()) {
    const auto image = folder.files.find(file.name());
    if (image == folder.files.end()) {
      return absl::NotFoundError(
          absl::StrCat(name, "/", file.name(), " is not there"));
    }
    if (image->second.step != folder.manifest->step() ||
        image->second.plan_epoch != folder.manifest->plan_epoch()) {
      return absl::DataLossError(
          absl::StrCat(name, "/", file.name(), " is of another step or plan"));
    }
    if (ChecksumOf(image->second) != file.crc32c()) {
      return absl::DataLossError(absl::StrCat(
          name, "/", file.name(), " is not the file of its manifest"));
    }
  }
  return absl::OkStatus();
}

std::optional<int64_t> Disk::OlderWhole(int64_t from_step,
                                        int64_t below_step) const {
  for (auto it = folders_.rbegin(); it != folders_.rend(); ++it) {
    if (!it->second.manifest) continue;
    const int64_t step = it->second.manifest->step();
    if (step < from_step || step >= below_step) continue;
    if (Check(it->first, it->second).ok()) return step;
  }
  return std::nullopt;
}

bool Disk::DamageNewest() {
  for (auto it = folders_.rbegin(); it != folders_.rend(); ++it) {
    if (!it->second.manifest) continue;
    const std::string& file = it->second.manifest->files(0).name();
    float& value = it->second.files.at(file).blocks[0].weights[0];
    value = value == 0 ? 1 : -value;
    damaged_ = true;
    return true;
  }
  return false;
}

absl::StatusOr<WholeState> Disk::Read(const std::string& folder,
                                      const ParameterSpecs& parameters,
                                      size_t num_states) const {
  const auto found = folders_.find(folder);
  if (found == folders_.end() || !found->second.manifest) {
    return absl::NotFoundError(absl::StrCat(folder, " is no checkpoint"));
  }
  if (const absl::Status status = Check(folder, found->second); !status.ok()) {
    return status;
  }
  WholeState whole;
  whole.step = found->second.manifest->step();
  for (const ParameterSpec& spec : parameters) {
    whole.weights.emplace_back(spec.size());
  }
  whole.state.assign(num_states, whole.weights);
  for (const v1::CheckpointFile& file : found->second.manifest->files()) {
    for (const BlockCopy& block : found->second.files.at(file.name()).blocks) {
      CopyIn(block.block, block.weights, &whole.weights);
      for (size_t i = 0; i < num_states; ++i) {
        CopyIn(block.block, block.state[i], &whole.state[i]);
      }
    }
  }
  return whole;
}

std::optional<int64_t> Disk::NewestStep() const {
  for (auto it = folders_.rbegin(); it != folders_.rend(); ++it) {
    if (it->second.manifest) return it->second.manifest->step();
  }
  return std::nullopt;
}

}  // namespace tributary::simulation
