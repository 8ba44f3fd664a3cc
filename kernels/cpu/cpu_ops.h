// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops.h"
#include "kernels/product_precision.h"

namespace tributary {

// The reference implementation of Ops. Each call does its work on the caller's
// thread before it returns. The files of this folder implement the methods by
// kind.
class CpuOps : public Ops {
 public:
  explicit CpuOps(ProductPrecision precision);

  const char* device_name() const override { return "cpu"; }
  bool is_host() const override { return true; }

  DeviceStatus Synchronize() override { return DeviceStatus(); }
  DeviceStatus fault() const override { return DeviceStatus(); }

#include "kernels/ops/overrides.inc"

 private:
  bool TakesDirectly(const Convolution& c) const;

  const ProductPrecision precision_;
};

}  // namespace tributary
