// SPDX-License-Identifier: Apache-2.0
#include "cli/run/check_memory.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/tensor.h"
#include "common/job/job_options.h"
#include "common/job/optimizer_spec.h"
#include "common/layers/model_parameters.h"
#include "common/optimizer/optimizer.h"

namespace tributary {
namespace {

constexpr double kWeightBytes = sizeof(float);

// The number of optimizer states of each weight. Groups may freeze parameters
// or give them another optimizer, so with groups the number is taken as 0.
double StatesOf(const v1::JobSpec& job, const OptimizerOptions& optimizer) {
  if (job.training().parameter_groups_size() > 0) return 0;
  return Optimizer(optimizer).states_per_weight();
}

// Whether this machine may have a GPU, in whose memory the ranks work.
bool MayHaveGpu(const v1::JobSpec& job) {
  std::error_code error;
  return job.device() != v1::DEVICE_CPU &&
         std::filesystem::exists("/dev/nvidiactl", error);
}

std::string CountOf(int count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

uint64_t LeastMemory(const v1::JobSpec& job, const MemoryNeed& need) {
  const Strategy strategy = StrategyOf(job);
  const double model =
      kWeightBytes *
      std::accumulate(need.parameters.begin(), need.parameters.end(), 0.0);
  const double replicas = strategy.mesh().data;
  double bytes = 0;
  if (strategy.uses_servers()) {
    bytes +=
        (2 + strategy.delay + StatesOf(job, ServerOptimizerOptionsOf(job))) *
        model;
  }
  if (need.on_accelerators) return static_cast<uint64_t>(bytes);
  bytes += replicas * 3 * strategy.delay * model;  // ExchangeMemory
  if (need.programs) {
    // Counts all gradients and one more, which the backward pass is computing.
    const double largest =
        need.parameters.empty()
            ? 0
            : static_cast<double>(*std::max_element(need.parameters.begin(),
                                                    need.parameters.end()));
    return static_cast<uint64_t>(bytes +
                                 replicas * (model + kWeightBytes * largest));
  }
  bytes += replicas * 2 * model;  // weights and gradients
  const bool shared = strategy.one_process() ||
                      strategy.exchange == Exchange::kShardedAllReduce;
  if (!strategy.uses_servers() || strategy.exchange_every > 1) {
    bytes += (shared ? 1 : replicas) * model *
             StatesOf(job, OptimizerOptionsOf(job.training().optimizer()));
  }
  return static_cast<uint64_t>(bytes);
}

absl::Status CheckMemory(const v1::JobSpec& job, const MemoryNeed& need,
                         const std::optional<AvailableMemory>& available) {
  const v1::ClusterSpec& cluster = job.cluster();
  return CheckClaim(
      {.who = "the job",
       .bytes = LeastMemory(job, need),
       .purpose =
           absl::StrCat("weights, gradients and the optimizer's state in ",
                        cluster.servers() > 0
                            ? CountOf(cluster.servers(), "server") + " and "
                            : "",
                        CountOf(cluster.workers(), "worker")),
       .remedy = "use fewer workers, a smaller model or more machines"},
      available);
}

absl::Status CheckMemoryOfModel(const v1::JobSpec& job) {
  MemoryNeed need{.on_accelerators = MayHaveGpu(job)};
  for (const ParameterSpec& parameter : ModelParameters(job.model())) {
    need.parameters.push_back(NumElements(parameter.shape));
  }
  return CheckMemory(job, need, ReadAvailableMemory());
}

absl::Status CheckMemoryOfProgram(const v1::JobSpec& job,
                                  const std::vector<int64_t>& parameters) {
  return CheckMemory(job,
                     {.parameters = parameters,
                      .programs = true,
                      .on_accelerators = MayHaveGpu(job)},
                     ReadAvailableMemory());
}

}  // namespace tributary
