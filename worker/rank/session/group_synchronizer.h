// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_memory.h"
#include "common/optimizer/parameter_group.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/parallel/all_reduce_options.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/session/connect_group.h"

namespace tributary {

// The objects and settings with which a rank adds up gradients among the
// workers, without servers. `model` and the objects in `group` must outlive the
// synchronizer.
struct GroupSynchronizerParts {
  GroupParts group;
  ParameterMemory* model = nullptr;  // as AllReduceOptions::model
  // The ranks that hold this part of the model, and the name of their group.
  std::vector<int> ranks;
  std::string name = "data/0/0";
  AllReduceOptions::Part part;
  std::function<double(int64_t step)> learning_rate;  // of training.optimizer
  std::vector<ParameterGroup> groups;
  // As AllReduceOptions::samples.
  std::function<std::vector<uint64_t>(int64_t step)> samples;
};

// Connects a rank to the others of its group for a job whose strategy has no
// servers, and opens the checkpoint that the plan starts from. Errors as those
// of ConnectGroup and of the checkpoint's reader.
absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeGroupSynchronizer(
    GroupSynchronizerParts parts, const v1::Plan& plan);

}  // namespace tributary
