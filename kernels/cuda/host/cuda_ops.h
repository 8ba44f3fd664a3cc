// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "kernels/cuda/host/cublas.h"
#include "kernels/cuda/host/staging.h"
#include "kernels/ops.h"
#include "kernels/product_precision.h"

namespace tributary {

// Ops on a CUDA device, in order on a stream of its own. Every launch is
// checked; the first fault is kept until Synchronize returns it.
class CudaOps final : public Ops {
 public:
  // nullptr and the reason when the device can't be used.
  static std::unique_ptr<CudaOps> Create(int device, ProductPrecision precision,
                                         std::string* why_not);
  ~CudaOps() override;

  const char* device_name() const override { return name_.c_str(); }
  bool is_host() const override { return false; }
  std::string device_id() const override;

  int device() const { return device_; }
  // The device's part of ArithmeticOf (kernels/device.h).
  std::string arithmetic() const;
  cudaStream_t stream() const { return stream_; }

  DeviceStatus Synchronize() override;
  DeviceStatus fault() const override { return fault_; }
  std::unique_ptr<PinnedMemory> Pin(void* memory, size_t bytes,
                                    std::string* why_not) override;

#include "kernels/ops/overrides.inc"

 private:
  friend class CudaConvolution;  // records the faults of its kernels
  friend class CudaEvent;
  explicit CudaOps(ProductPrecision precision) : precision_(precision) {}
  DeviceStatus Start(int device);
  bool rounds() const { return precision_ == ProductPrecision::kBfloat16; }

  // Makes the device current on the calling thread and returns the stream.
  cudaStream_t Stream();
  void Record(const DeviceStatus& status);
  // Returns a scratch array of at least `bytes`, or null when there is no
  // memory. The array only grows.
  double* Scratch(size_t bytes);
  // The same for a second array, which holds the operands of a product.
  uint16_t* Operands(size_t bytes);
  // Gemm of bfloat16 operands whose rows have the lengths that p gives.
  void MultiplyRounded(const Product& p, const uint16_t* a, const uint16_t* b,
                       float* c);
  // Grows an array to `bytes`; its contents are lost.
  void* Grow(size_t bytes, void** array, size_t* size);

  const ProductPrecision precision_;
  int device_ = 0;
  std::string name_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<Staging> staging_;
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  void* operands_ = nullptr;
  size_t operands_bytes_ = 0;
  DeviceStatus fault_;  // the first since the last Synchronize
};

}  // namespace tributary
