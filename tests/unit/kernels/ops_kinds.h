// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "kernels/device.h"

namespace tributary::testing {

// A device and a precision that golden layers are computed with.
struct OpsKind {
  DeviceChoice device;
  ProductPrecision precision = ProductPrecision::kFloat32;

  bool rounds() const { return precision == ProductPrecision::kBfloat16; }
  std::string Name() const {
    return std::string(device == DeviceChoice::kCpu ? "Cpu" : "Cuda") +
           (rounds() ? "Bfloat16" : "");
  }
  friend void PrintTo(const OpsKind& kind, std::ostream* out) {
    *out << kind.Name();
  }
};

inline constexpr OpsKind kAllOpsKinds[] = {
    {DeviceChoice::kCpu},
    {DeviceChoice::kCuda},
    {DeviceChoice::kCpu, ProductPrecision::kBfloat16},
    {DeviceChoice::kCuda, ProductPrecision::kBfloat16}};

// PyTorch with the operands of every product rounded to bfloat16 is up to
// 1.13e-2 of the largest element away from float64 in these groups.
inline constexpr double kBfloat16Tolerance = 1.2e-2;

}  // namespace tributary::testing
