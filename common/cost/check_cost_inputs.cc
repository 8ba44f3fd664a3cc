#include "common/cost/check_cost_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/partition_plan.h"

namespace tributary {
namespace {

absl::Status Wrong(const char* what, double wanted_from, double got) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " wants at least ", wanted_from, ", got ", got));
}

}  // namespace

absl::Status CheckCostInputs(const CostInputs& in) {
  const StrategyShape& s = in.strategy;
  if (in.model == nullptr || in.model->layers.empty()) {
    return absl::InvalidArgumentError("a prediction wants a model");
  }
  for (const auto& [what, value] :
       {std::pair("workers", in.workers), std::pair("tensor", s.tensor),
        std::pair("stages", s.stages),
        std::pair("micro_batches", s.micro_batches),
        std::pair("servers", s.servers),
        std::pair("exchange_every", s.exchange_every)}) {
    if (value < 1) return Wrong(what, 1, value);
  }
  if (in.global_rows < 1 || in.accumulation < 1) {
    return Wrong("the batch", 1, static_cast<double>(in.global_rows));
  }
  if (!(in.cluster.bandwidth > 0) || !(in.cluster.latency >= 0) ||
      !(in.compute.forward_flops > 0) || !(in.compute.backward_flops > 0) ||
      !(in.compute.memory_bandwidth > 0)) {
    return absl::InvalidArgumentError(
        "bandwidth, compute and memory bandwidth want to be above 0, latency "
        "at least 0");
  }
  if (in.workers % (s.tensor * s.stages) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(in.workers, " workers are no multiple of tensor ",
                     s.tensor, " x stages ", s.stages));
  }
  if (s.exchange == Exchange::kThreads && s.tensor * s.stages > 1) {
    return absl::InvalidArgumentError(
        "replicas of one process are neither cut nor staged");
  }
  if (s.exchange != Exchange::kParameterServer) return absl::OkStatus();
  ParameterSpecs specs;
  for (size_t p = 0; p < in.model->parameter_sizes.size(); ++p) {
    specs.push_back({absl::StrCat(p), {in.model->parameter_sizes[p]}});
  }
  return PartitionPlan::Create(specs, s.servers, s.bucket_bytes).status();
}

}  // namespace tributary
