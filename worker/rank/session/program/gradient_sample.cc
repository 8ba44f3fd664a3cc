// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/gradient_sample.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {

void GradientSample::Add(int index, const ParameterSpec& parameter,
                         const float* gradient) {
  if (parameter.is_running()) return;
  const int64_t size = parameter.size();
  const int64_t count = std::min(size, kElements);
  std::array<float, kElements> taken;
  for (int64_t i = 0; i < count; ++i) taken[i] = gradient[i * size / count];
  if (std::all_of(taken.begin(), taken.begin() + count,
                  [](float value) { return value == 0; })) {
    return;
  }
  sum_ ^= ExtendCrc32c(Crc32c(&index, sizeof(index)), taken.data(),
                       static_cast<size_t>(count) * sizeof(float));
}

uint32_t GradientSample::Take() { return std::exchange(sum_, 0); }

}  // namespace tributary
