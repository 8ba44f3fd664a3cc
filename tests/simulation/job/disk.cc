// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/job/disk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/checkpoint/manifest.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary::simulation {
namespace {

void CopyIn(const Block& block, const SharedBuffer& values, Tensors* tensors) {
  for (const Slice& slice : block.slices) {
    std::copy_n(values.data() + slice.offset, slice.size(),
                (*tensors)[slice.parameter].begin() + slice.begin);
  }
}

BlockSnapshot CopyOf(const BlockImage& image) {
  Block block;
  block.size = image.num_elements;
  block.slices = {image.slices.begin(), image.slices.end()};
  SharedBuffer weights(block.size);
  std::copy_n(image.weights, block.size, weights.data());
  return BlockSnapshot(
      {.block = &block, .weights = std::move(weights), .state = image.state});
}

}  // namespace

void WholeState::CopyOut(const Block& block, float* weights_out,
                         const std::vector<float*>& state_out) const {
  const auto copy = [&block](const Tensors& tensors, float* out) {
    for (const Slice& slice : block.slices) {
      std::copy_n(tensors[slice.parameter].begin() + slice.begin, slice.size(),
                  out + slice.offset);
    }
  };
  copy(weights, weights_out);
  for (size_t i = 0; i < state_out.size(); ++i) copy(state[i], state_out[i]);
}

std::string Disk::FolderName(int64_t step) {
  return absl::StrFormat("step-%012d", step);
}

uint32_t Disk::ChecksumOf(const File& file) {
  uint32_t crc = 0;
  for (const BlockSnapshot& block : file.blocks) {
    const auto bytes = static_cast<size_t>(block.block.bytes());
    crc = ExtendCrc32c(crc, block.weights.data(), bytes);
    for (const SharedBuffer& state : block.state) {
      crc = ExtendCrc32c(crc, state.data(), bytes);
    }
  }
  return crc;
}

absl::StatusOr<v1::CheckpointFile> Disk::WriteShard(
    const ShardFileHeader& header, absl::Span<const BlockImage> images) {
  if (full_) return absl::ResourceExhaustedError("the disk is full");
  File file{header, {}};
  v1::CheckpointFile written;
  written.set_name(FileNameOf(header));
  for (const BlockImage& image : images) {
    const auto bytes = image.num_elements * sizeof(float);
    written.set_bytes(written.bytes() + bytes * (1 + image.state.size()));
    file.blocks.push_back(CopyOf(image));
  }
  written.set_crc32c(ChecksumOf(file));
  folders_[FolderName(header.step)].files.insert_or_assign(written.name(),
                                                           std::move(file));
  return written;
}

absl::Status Disk::WriteManifest(const v1::CheckpointManifest& manifest) {
  if (full_) return absl::ResourceExhaustedError("the disk is full");
  const auto found = folders_.find(FolderName(manifest.step()));
  if (found == folders_.end()) return absl::NotFoundError("no such folder");
  for (const v1::CheckpointFile& file : FilesOf(manifest)) {
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

absl::Status Disk::Check(const std::string& name, const Folder& folder,
                         const NamedFiles& files) {
  for (const v1::CheckpointFile& file : files) {
    const auto image = folder.files.find(file.name());
    if (image == folder.files.end()) {
      return absl::NotFoundError(
          absl::StrCat(name, "/", file.name(), " is not there"));
    }
    if (image->second.header.step != folder.manifest->step() ||
        image->second.header.plan_epoch != folder.manifest->plan_epoch()) {
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
    const v1::CheckpointManifest& manifest = *it->second.manifest;
    if (Check(it->first, it->second, manifest.files()).ok() &&
        Check(it->first, it->second, manifest.residuals()).ok()) {
      return step;
    }
  }
  return std::nullopt;
}

bool Disk::DamageNewest() {
  for (auto it = folders_.rbegin(); it != folders_.rend(); ++it) {
    if (!it->second.manifest) continue;
    const v1::CheckpointManifest& manifest = *it->second.manifest;
    const bool residual = manifest.step() % 2 == 1 && manifest.residuals_size();
    const std::string& file =
        residual ? manifest.residuals(0).name() : manifest.files(0).name();
    float& value = *it->second.files.at(file).blocks[0].weights.data();
    value = value == 0 ? 1 : -value;
    damaged_ = true;
    return true;
  }
  return false;
}

absl::StatusOr<WholeState> Disk::Read(const std::string& folder,
                                      const ParameterSpecs& parameters,
                                      size_t num_states) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const Folder* const found, Find(folder));
  TRIBUTARY_RETURN_IF_ERROR(Check(folder, *found, found->manifest->files()));
  WholeState whole;
  whole.step = found->manifest->step();
  for (const ParameterSpec& spec : parameters) {
    whole.weights.emplace_back(spec.size());
  }
  whole.state.assign(num_states, whole.weights);
  for (const v1::CheckpointFile& file : found->manifest->files()) {
    whole.skipped_steps = found->files.at(file.name()).header.skipped_steps;
    for (const BlockSnapshot& block : found->files.at(file.name()).blocks) {
      CopyIn(block.block, block.weights, &whole.weights);
      for (size_t i = 0; i < num_states; ++i) {
        CopyIn(block.block, block.state[i], &whole.state[i]);
      }
    }
  }
  return whole;
}

absl::StatusOr<const Disk::Folder*> Disk::Find(const std::string& name) const {
  const auto found = folders_.find(name.substr(name.rfind('/') + 1));
  if (found == folders_.end() || !found->second.manifest) {
    return absl::NotFoundError(absl::StrCat(name, " is no checkpoint"));
  }
  return &found->second;
}

absl::Status Disk::ReadResidual(const std::string& folder, int rank,
                                absl::Span<float* const> residuals) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const Folder* const found, Find(folder));
  const NamedFiles& named = found->manifest->residuals();
  if (rank >= named.size()) {
    return absl::NotFoundError(
        absl::StrCat(folder, " has no residual of rank ", rank));
  }
  NamedFiles one;
  *one.Add() = named[rank];
  TRIBUTARY_RETURN_IF_ERROR(Check(folder, *found, one));
  for (const BlockSnapshot& block :
       found->files.at(named[rank].name()).blocks) {
    PartitionPlan::Scatter(block.block, block.weights.data(), residuals);
  }
  return absl::OkStatus();
}

std::optional<int64_t> Disk::NewestStep() const {
  for (auto it = folders_.rbegin(); it != folders_.rend(); ++it) {
    if (it->second.manifest) return it->second.manifest->step();
  }
  return std::nullopt;
}

}  // namespace tributary::simulation
