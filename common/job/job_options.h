// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/replaced_mean.h"
#include "common/base/step_count.h"
#include "common/base/strategy.h"
#include "common/base/sync_traits.h"
#include "common/job/optimizer_spec.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The strategy of a resolved job.
Strategy StrategyOf(const v1::JobSpec& job);

// Whether tensor-parallel ranks compute the loss on partitioned logits.
bool CutsLogits(const v1::JobSpec& job);

// The optimizer that runs on the servers: the outer optimizer with local_sgd,
// otherwise the job's.
OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job);
// The names of the states that the servers' checkpoints hold beside the
// weights: that optimizer's and, with a delay, the weights of one step before.
std::vector<std::string> ServerStatesOf(const v1::JobSpec& job);
std::vector<std::string> ServerStatesOf(const OptimizerOptions& optimizer,
                                        int64_t delay);

// Reads strategy.parameter_server.sync. A job without servers gets the traits
// of bsp.
SyncTraits SyncTraitsOf(const v1::JobSpec& job);

// How the job averages values that replace running averages: a program's
// buffers, and with local_sgd the averages that each worker has moved itself.
ReplacedMean ReplacedMeanOf(const v1::JobSpec& job);

// How the workers' steps count in the versions of the servers' weights.
StepCount StepCountOf(const v1::JobSpec& job);

// Whether a plan that began after `start_step` and whose last step is `step`
// leaves a checkpoint of this step only because it is the last one
// (checkpoint.at_end). Also false within a round of local_sgd, because no job
// could continue from such a checkpoint.
bool LeavesCheckpointAtEnd(const v1::JobSpec& job, int64_t start_step,
                           int64_t step);

}  // namespace tributary
