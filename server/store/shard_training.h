// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/replaced_mean.h"
#include "common/optimizer/optimizer_options.h"
#include "common/optimizer/parameter_group.h"
#include "server/aggregate/step_gradient.h"
#include "server/sync/sync_policy.h"

namespace tributary {

// How a contribution with a NaN or an infinity is handled.
enum class NonFiniteAction {
  kFail,    // refused, and on_fatal is called
  kReject,  // refused
  kSkip,    // accepted; the whole step changes nothing. Gathered steps only.
};

// How a shard trains. It follows from the job and is equal on all its servers.
struct ShardTraining {
  OptimizerOptions optimizer;
  // Learning rate of a gathered step, or of the step of one contribution, from
  // 0.
  std::function<double(int64_t step)> learning_rate;
  std::vector<ParameterGroup> groups;
  double clip_norm = 0;  // 0: no clipping
  std::unique_ptr<SyncPolicy> policy;
  // Divides the learning rate of a contribution by the number of updates since
  // its weights were read. Not for gathered steps.
  bool scale_by_staleness = false;
  int kept_versions = 0;  // these two as in BlockState::Options
  bool saves_previous = false;
  Summation summation;
  ReplacedMean replaced_mean = ReplacedMean::kAsGradients;
  NonFiniteAction nonfinite = NonFiniteAction::kFail;
  // Steps of the job per contribution; the aggregators and clocks of a shard
  // count contributions.
  int64_t steps_an_update = 1;
  // Each block hands over a snapshot after every this many steps of the job; 0:
  // never.
  int64_t checkpoint_every_steps = 0;
  int64_t total_steps = INT64_MAX;  // of the job
};

}  // namespace tributary
