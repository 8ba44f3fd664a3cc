// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/weight_seal.h"

#include <algorithm>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

uint32_t SealOf(const ParameterSpec& parameter, const float* weights,
                int64_t step) {
  if (parameter.is_running()) return 0;
  const int64_t size = parameter.size();
  if (size <= WeightSeal::kSmall) {
    return Crc32c(weights, static_cast<size_t>(size) * sizeof(float));
  }
  uint32_t sum = 0;
  for (int64_t run = step % WeightSeal::kStride; run * WeightSeal::kRun < size;
       run += WeightSeal::kStride) {
    const int64_t begin = run * WeightSeal::kRun;
    const int64_t count = std::min(WeightSeal::kRun, size - begin);
    sum = ExtendCrc32c(sum, weights + begin,
                       static_cast<size_t>(count) * sizeof(float));
  }
  return sum;
}

}  // namespace

void WeightSeal::Close(const ParameterSpecs& parameters,
                       const std::vector<float*>& weights, int64_t step) {
  step_ = step;
  sums_.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    sums_[i] = SealOf(parameters[i], weights[i], step);
  }
}

int WeightSeal::FirstChanged(const ParameterSpecs& parameters,
                             const std::vector<float*>& weights) const {
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (SealOf(parameters[i], weights[i], step_) != sums_[i]) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace tributary
