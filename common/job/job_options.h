#pragma once

#include <cstdint>
#include <string>

#include "common/base/device_mesh.h"
#include "common/base/optimizer_options.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The optimizer of a resolved job (ReadJobFile) as plain values.
OptimizerOptions OptimizerOptionsOf(const v1::OptimizerSpec& spec);

// Whether servers hold the weights; else the workers do, among themselves.
bool UsesServers(const v1::JobSpec& job);

// "parameter_server", "all_reduce", ...: the key in the job file.
std::string StrategyName(const v1::JobSpec& job);

// How many processes the job's workers are: one each, or all of them threads of
// one.
int WorkerProcesses(const v1::JobSpec& job);

// The workers as the strategy arranges them.
DeviceMesh DeviceMeshOf(const v1::JobSpec& job);

// Whether tensor-parallel ranks leave the logits cut for the loss.
bool CutsLogits(const v1::JobSpec& job);

// Whether workers form groups, of which none can be replaced by itself.
bool HasGroups(const v1::JobSpec& job);

// How long a step may wait for a member.
double StepTimeoutSeconds(const v1::JobSpec& job);

// The optimizer that runs on the servers: the job's, but with local_sgd the
// outer one.
OptimizerOptions ServerOptimizerOptionsOf(const v1::JobSpec& job);

// Optimizer steps of the workers for each that their servers gather: 1, but
// with local_sgd the period.
int64_t StepsAnUpdate(const v1::JobSpec& job);

// The version of the servers' weights once every worker has finished `steps`
// steps.
int64_t VersionAfter(const v1::JobSpec& job, int64_t steps);

}  // namespace tributary
