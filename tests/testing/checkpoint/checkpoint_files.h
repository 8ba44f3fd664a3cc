// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/parameter_spec.h"
#include "common/plan/partition_plan.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary::testing {

// A model of 43,105 elements whose values are a function of their position, and
// its checkpoints as any number of servers would write them.
struct CheckpointModel {
  std::string name = "small";
  uint64_t job_id = 7;
  uint64_t lineage = 0;
  uint64_t plan_epoch = 0;
  ParameterSpecs parameters = {{"0.weight", {300, 100}},
                               {"0.bias", {300}},
                               {"2.weight", {4, 3200}},
                               {"2.bias", {4}},
                               {"4.scale", {}}};
  std::vector<std::string> state_names = {"exp_avg", "exp_avg_sq"};
  float offset = 0;                         // added to every value
  std::vector<int64_t> skipped_steps = {};  // in the file of each shard, or 0
  bool residuals = false;  // whether the checkpoint holds those of its ranks
  std::string key;         // of its keyed checksum; empty: it has none

  // tensor: 0 for weights, 1 + i for state i.
  float Value(int tensor, int parameter, int64_t element) const {
    return static_cast<float>(element) + 1e5f * static_cast<float>(parameter) +
           0.25f * static_cast<float>(tensor) + offset;
  }
  std::vector<float> Tensor(int tensor, int parameter) const;

  PartitionPlan Plan(int num_shards) const;

  // Writes the file of `shard`.
  absl::StatusOr<v1::CheckpointFile> WriteShard(const std::string& folder,
                                                int64_t step, int shard,
                                                int num_shards) const;
  // The number of ranks, and the residual of one. Rank 1 has an empty residual
  // of the last parameter.
  static constexpr int kRanks = 2;
  std::vector<std::vector<float>> Residual(int rank) const;
  // Writes the residual of `rank`.
  absl::StatusOr<v1::CheckpointFile> WriteResidual(const std::string& folder,
                                                   int64_t step,
                                                   int rank) const;

  // The manifest without its list of files.
  v1::CheckpointManifest Manifest(int64_t step) const;
  // Writes a complete checkpoint, as a job does.
  absl::Status Write(const std::string& directory, int64_t step,
                     int num_shards) const;
};

}  // namespace tributary::testing
