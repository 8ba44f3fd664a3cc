// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/rank_sums.h"

#include <algorithm>
#include <utility>

#include "common/plan/partition_plan.h"
#include "common/status/status_macros.h"
#include "common/update/factored_moments.h"
#include "common/update/grain_sums.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

absl::Status RankSums::AllGather(float* values,
                                 const std::vector<int64_t>& bounds) {
  if (ops_.is_host()) return group_.AllGather(values, bounds);
  const int64_t n = bounds.back();
  if (n > passage_size_) {
    TRIBUTARY_ASSIGN_OR_RETURN(passage_,
                               DeviceArray<float>::Allocate(&ops_, n));
    passage_size_ = n;
  }
  ops_.CopyIn(passage_.data(), values, n * sizeof(float));
  TRIBUTARY_RETURN_IF_ERROR(group_.AllGather(passage_.data(), bounds));
  ops_.CopyOut(values, passage_.data(), n * sizeof(float));
  return SynchronizeDevice(ops_);
}

absl::StatusOr<RankSums::Gathered> RankSums::GatherValues(
    std::vector<double> own,
    const std::function<int64_t(const GradientRange&)>& count) {
  // The values of all ranks, one rank after another. They are exchanged as
  // floats, two per double.
  std::vector<int64_t> bounds = {0};
  for (const std::vector<GradientRange>& ranges : ranges_) {
    int64_t values = 0;
    for (const GradientRange& range : ranges) values += count(range);
    bounds.push_back(bounds.back() + 2 * values);
  }
  const int size = group_.size(), rank = group_.rank();
  Gathered gathered;
  if (replicated_) {
    gathered.values = std::move(own);
  } else {
    gathered.values.resize(bounds[size] / 2);
    std::copy(own.begin(), own.end(),
              gathered.values.begin() + bounds[rank] / 2);
    TRIBUTARY_RETURN_IF_ERROR(
        AllGather(reinterpret_cast<float*>(gathered.values.data()), bounds));
  }
  const double* next = gathered.values.data();
  for (int r = replicated_ ? rank : 0; r < (replicated_ ? rank + 1 : size);
       ++r) {
    for (const GradientRange& range : ranges_[r]) {
      gathered.ranges.emplace_back(range, next);
      next += count(range);
    }
  }
  return gathered;
}

absl::StatusOr<std::vector<std::vector<double>>> RankSums::PerParameter(
    std::vector<double> own, int stride) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const Gathered gathered,
      GatherValues(std::move(own), [stride](const GradientRange& range) {
        return stride * NumGrains(range.size());
      }));
  std::vector<GrainValues> stretches;
  for (const auto& [range, values] : gathered.ranges) {
    stretches.push_back(
        {range.parameter, range.begin, NumGrains(range.size()), values});
  }
  return SumGrains(std::move(stretches), stride, num_parameters_);
}

absl::StatusOr<std::vector<std::vector<double>>> RankSums::FactorTotals(
    const Optimizer& optimizer, const ParameterSpecs& parameters,
    std::vector<double> own) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const Gathered gathered,
      GatherValues(std::move(own), [&](const GradientRange& range) {
        return NumFactorSums(optimizer, parameters[range.parameter],
                             range.begin, range.end);
      }));
  std::vector<FactorSums> sums;
  for (const auto& [range, values] : gathered.ranges) {
    sums.push_back({range.parameter, range.begin, range.end, values});
  }
  return AddFactorSums(optimizer, parameters, sums);
}

}  // namespace tributary
