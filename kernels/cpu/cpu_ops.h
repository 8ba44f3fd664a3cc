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

  // update.cc
  void WeightedSum(int64_t n, int count, const float* const* parts,
                   const float* weights, float* out) override;
  void OptimizerUpdate(const OptimizerStep& step, int64_t n,
                       const float* gradient, const float* weight_in,
                       float* weight_out, float* const* state) override;
  void OptimizerDirection(const OptimizerStep& step, int64_t n,
                          const float* gradient, const float* weight,
                          float* direction, float* const* state) override;
  void ApplyDirection(int64_t n, float rate, float weight_scale,
                      const float* direction, const float* weight_in,
                      float* weight_out) override;
  void FactorSums(const FactoredSlice& slice, float scale, double unit,
                  const float* gradient, double* sums) override;
  void FactoredDirection(const FactoredSlice& slice, const OptimizerStep& step,
                         float mean, const float* rows, const float* columns,
                         const float* gradient, float* direction) override;
  void GrainSquares(int64_t n, int64_t grain, const float* x,
                    double* out) override;

 private:
  bool TakesDirectly(const Convolution& c) const;

  const ProductPrecision precision_;
};

}  // namespace tributary
