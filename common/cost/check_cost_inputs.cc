// SPDX-License-Identifier: Apache-2.0
#include "common/cost/check_cost_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cost/exchange_times.h"
#include "common/plan/partition_plan.h"

namespace tributary {
namespace {

// Minimum of rates (bytes or FLOPs per second) and of cores. With smaller ones
// times could overflow a double, and sums of them would not be numbers.
constexpr double kLeastRate = 1e-3;
constexpr double kLeastCores = 1e-3;
constexpr double kMostOfAnything = 1e18;  // seconds, bytes

absl::Status Wrong(const char* what, double wanted_from, double got) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " wants at least ", wanted_from, ", got ", got));
}

}  // namespace

absl::Status CheckCostInputs(const CostInputs& in) {
  const Strategy& s = in.strategy;
  if (in.model == nullptr || in.model->layers.empty()) {
    return absl::InvalidArgumentError("a prediction wants a model");
  }
  for (const auto& [what, value] :
       {std::pair("workers", s.workers), std::pair("tensor", s.tensor),
        std::pair("stages", s.stages),
        std::pair("micro_batches", s.micro_batches),
        std::pair("servers", s.servers),
        std::pair("exchange_every", s.exchange_every)}) {
    if (value < 1) return Wrong(what, 1, value);
  }
  if (in.global_rows < 1 || in.accumulation < 1) {
    return Wrong("the batch", 1, static_cast<double>(in.global_rows));
  }
  for (const auto& [what, value] :
       {std::pair("bandwidth", in.cluster.bandwidth),
        std::pair("forward compute", in.compute.forward_flops),
        std::pair("backward compute", in.compute.backward_flops),
        std::pair("memory bandwidth", in.compute.memory_bandwidth)}) {
    if (!(value >= kLeastRate)) return Wrong(what, kLeastRate, value);
  }
  for (const auto& [what, value] :
       {std::pair("latency", in.cluster.latency),
        std::pair("burst", in.cluster.burst_bytes),
        std::pair("pass", in.compute.pass_seconds)}) {
    if (!(value >= 0 && value <= kMostOfAnything)) return Wrong(what, 0, value);
  }
  const double cores = in.cluster.shared_cores;
  if (cores != 0 && !(cores >= kLeastCores)) {
    return Wrong("shared cores, where there are any,", kLeastCores, cores);
  }
  if (s.workers % (s.tensor * s.stages) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(s.workers, " workers are no multiple of tensor ", s.tensor,
                     " x stages ", s.stages));
  }
  if (s.one_process() && s.tensor * s.stages > 1) {
    return absl::InvalidArgumentError(
        "replicas of one process are neither cut nor staged");
  }
  if (!s.uses_servers()) return absl::OkStatus();
  ParameterSpecs specs;
  for (size_t p = 0; p < in.model->parameter_sizes.size(); ++p) {
    specs.push_back({absl::StrCat(p), {in.model->parameter_sizes[p]}});
  }
  return PartitionPlan::Create(specs, s.servers, BucketBytes(in)).status();
}

}  // namespace tributary
