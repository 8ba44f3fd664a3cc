#pragma once

#include <cstdint>
#include <string>

#include "common/base/device_mesh.h"
#include "common/base/optimizer_options.h"
#include "common/base/step_count.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Converts the optimizer of a resolved job (ReadJobFile) to plain values.
OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec);

// Whether servers hold the weights; otherwise the workers hold them.
bool UsesServers(const v1::JobSpec& job);

// The strategy's key in the job file: "parameter_server", "all_reduce", ...
std::string StrategyName(const v1::JobSpec& job);

// The number of processes that run the job's workers: one per worker, or one
// whose threads are the workers.
int WorkerProcesses(const v1::JobSpec& job);

// The mesh in which the strategy arranges the workers.
DeviceMesh DeviceMeshOf(const v1::JobSpec& job);

// Whether tensor-parallel ranks compute the loss on partitioned logits.
bool CutsLogits(const v1::JobSpec& job);

// Whether workers form groups whose members cannot be replaced one at a time.
bool HasGroups(const v1::JobSpec& job);

// How long a step may wait for a member.
double StepTimeoutSeconds(const v1::JobSpec& job);

// The optimizer that runs on the servers: the outer optimizer with local_sgd,
// otherwise the job's.
OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job);

// How the workers' steps count in the versions of the servers' weights.
StepCount StepCountOf(const v1::JobSpec& job);

}  // namespace tributary
