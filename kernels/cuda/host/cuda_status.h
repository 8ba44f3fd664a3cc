// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/device_status.h"

namespace tributary {

inline DeviceStatus CudaStatus(cudaError_t error) {
  if (error == cudaSuccess) return DeviceStatus();
  return DeviceStatus::Error(std::string("CUDA: ") + cudaGetErrorName(error) +
                             ": " + cudaGetErrorString(error));
}

}  // namespace tributary
