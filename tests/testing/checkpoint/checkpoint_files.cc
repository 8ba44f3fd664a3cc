// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/checkpoint/checkpoint_files.h"

#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"

namespace tributary::testing {

std::vector<float> CheckpointModel::Tensor(int tensor, int parameter) const {
  std::vector<float> values(parameters[parameter].size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = Value(tensor, parameter, static_cast<int64_t>(i));
  }
  return values;
}

PartitionPlan CheckpointModel::Plan(int num_shards) const {
  // Small blocks, so that a shard has several of them.
  return PartitionPlan::Create(parameters, num_shards,
                               /*bucket_bytes=*/64 << 10)
      .value();
}

absl::StatusOr<v1::CheckpointFile> CheckpointModel::WriteShard(
    const std::string& folder, int64_t step, int shard, int num_shards) const {
  const PartitionPlan plan = Plan(num_shards);
  const size_t num_tensors = 1 + state_names.size();
  std::vector<std::vector<float>> values;  // [block x tensor]
  std::vector<BlockImage> images;
  for (const Block& block : plan.blocks(shard)) {
    for (size_t tensor = 0; tensor < num_tensors; ++tensor) {
      std::vector<float>& out = values.emplace_back();
      for (const Slice& slice : block.slices) {
        for (int64_t i = slice.begin; i < slice.end; ++i) {
          out.push_back(Value(static_cast<int>(tensor), slice.parameter, i));
        }
      }
    }
    BlockImage& image = images.emplace_back();
    image.slices = block.slices;
    image.num_elements = block.size;
  }
  for (size_t b = 0; b < images.size(); ++b) {
    images[b].weights = values[b * num_tensors].data();
    for (size_t tensor = 1; tensor < num_tensors; ++tensor) {
      images[b].state.push_back(values[b * num_tensors + tensor].data());
    }
  }
  return WriteShardFile(folder,
                        {{.job_id = job_id,
                          .lineage = lineage,
                          .plan_epoch = plan_epoch,
                          .shard = shard,
                          .num_shards = num_shards,
                          .parameters = parameters,
                          .state_names = state_names,
                          .digests = !key.empty()},
                         step,
                         skipped_steps.empty() ? 0 : skipped_steps[shard]},
                        images);
}

std::vector<std::vector<float>> CheckpointModel::Residual(int rank) const {
  std::vector<std::vector<float>> residual;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const bool none = rank == 1 && p + 1 == parameters.size();
    residual.push_back(none
                           ? std::vector<float>()
                           : Tensor(/*tensor=*/10 + rank, static_cast<int>(p)));
  }
  return residual;
}

absl::StatusOr<v1::CheckpointFile> CheckpointModel::WriteResidual(
    const std::string& folder, int64_t step, int rank) const {
  const std::vector<std::vector<float>> residual = Residual(rank);
  std::vector<Slice> slices;
  for (size_t p = 0; p < residual.size(); ++p) {
    slices.push_back({.parameter = static_cast<int>(p),
                      .end = static_cast<int64_t>(residual[p].size())});
  }
  std::vector<BlockImage> images;
  for (size_t p = 0; p < residual.size(); ++p) {
    if (residual[p].empty()) continue;
    images.push_back({.slices = absl::MakeConstSpan(&slices[p], 1),
                      .weights = residual[p].data(),
                      .state = {},
                      .num_elements = slices[p].size()});
  }
  return WriteShardFile(folder,
                        {{.kind = PagedFileKind::kResidual,
                          .job_id = job_id,
                          .lineage = lineage,
                          .plan_epoch = plan_epoch,
                          .shard = rank,
                          .num_shards = kRanks,
                          .parameters = parameters,
                          .state_names = {},
                          .digests = !key.empty()},
                         step},
                        images);
}

v1::CheckpointManifest CheckpointModel::Manifest(int64_t step) const {
  v1::CheckpointManifest manifest;
  manifest.set_name(name);
  manifest.set_job_id(job_id);
  manifest.set_lineage(lineage);
  manifest.set_plan_epoch(plan_epoch);
  manifest.mutable_job()->set_name(name);
  manifest.set_step(step);
  manifest.set_epoch(1 + step / 10);
  manifest.set_total_steps(40);
  manifest.set_steps_per_epoch(10);
  ToProto(parameters, manifest.mutable_parameters());
  for (const std::string& state : state_names) manifest.add_state_names(state);
  for (int rank = 0; rank < kRanks; ++rank) {
    manifest.add_workers()->set_steps(step);
  }
  manifest.set_created_micros(1'700'000'000'000'000);
  return manifest;
}

absl::Status CheckpointModel::Write(const std::string& directory, int64_t step,
                                    int num_shards) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string folder,
                             OpenCheckpointFolder(directory, step));
  v1::CheckpointManifest manifest = Manifest(step);
  for (int shard = 0; shard < num_shards; ++shard) {
    TRIBUTARY_ASSIGN_OR_RETURN(*manifest.add_files(),
                               WriteShard(folder, step, shard, num_shards));
  }
  for (int rank = 0; residuals && rank < kRanks; ++rank) {
    TRIBUTARY_ASSIGN_OR_RETURN(*manifest.add_residuals(),
                               WriteResidual(folder, step, rank));
  }
  return WriteManifest(directory, manifest, key);
}

}  // namespace tributary::testing
