// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/parameter_spec.h"
#include "common/optimizer/optimizer.h"
#include "common/plan/gradient_ranges.h"
#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/device_array.h"

namespace tributary {

// Adds up the values that each rank of an all-reduce computed for its ranges of
// the parameters, with the same bits on every rank.
class RankSums {
 public:
  // group and ops outlive the object; the group's arrays are on the device of
  // `ops`. ranges: [rank], in order. replicated: every rank has all ranges, so
  // that nothing is exchanged.
  RankSums(Communicator* group, Ops* ops,
           std::vector<std::vector<GradientRange>> ranges, bool replicated,
           size_t num_parameters)
      : group_(*group),
        ops_(*ops),
        ranges_(std::move(ranges)),
        replicated_(replicated),
        num_parameters_(num_parameters) {}

  // Communicator::AllGather for values in host memory.
  absl::Status AllGather(float* values, const std::vector<int64_t>& bounds);

  // Sums each value over the grains of every parameter: [value][parameter].
  // own: `stride` values for each grain of this rank's ranges.
  absl::StatusOr<std::vector<std::vector<double>>> PerParameter(
      std::vector<double> own, int stride);
  // Adds up LocalOptimizer::FactorSums of all ranks. Result: [parameter], the
  // sums of its rows and then of its columns; empty when it is not factored.
  absl::StatusOr<std::vector<std::vector<double>>> FactorTotals(
      const Optimizer& optimizer, const ParameterSpecs& parameters,
      std::vector<double> own);

 private:
  // The values of all ranks' ranges or, if every rank has all ranges, those of
  // this rank.
  struct Gathered {
    std::vector<double> values;
    std::vector<std::pair<GradientRange, const double*>> ranges;
  };
  // own: count(range) values for each of this rank's ranges.
  absl::StatusOr<Gathered> GatherValues(
      std::vector<double> own,
      const std::function<int64_t(const GradientRange&)>& count);

  Communicator& group_;
  Ops& ops_;
  const std::vector<std::vector<GradientRange>> ranges_;
  const bool replicated_;
  const size_t num_parameters_;
  DeviceArray<float> passage_;  // stages host values for AllGather
  int64_t passage_size_ = 0;
};

}  // namespace tributary
