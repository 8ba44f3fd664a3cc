// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda/host/cuda_ops.h"

namespace tributary {

std::string CudaOps::device_id() const {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof(bus), device_) == cudaSuccess) {
    return bus;
  }
  cudaGetLastError();  // the next launch must not report it
  return "";
}

std::string CudaOps::arithmetic() const {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  return name_ + ", driver for CUDA " + std::to_string(driver) + ", CUDA " +
         std::to_string(CUDART_VERSION) + ", cuBLAS " +
         std::to_string(cublas_->version());
}

std::string CudaArithmeticOf(const Ops& ops) {
  return static_cast<const CudaOps&>(ops).arithmetic();
}

}  // namespace tributary
