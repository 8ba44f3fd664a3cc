#pragma once

#include <memory>
#include <string>

#include "kernels/ops.h"

namespace tributary {

enum class DeviceChoice { kAuto, kCpu, kCuda };

// The Ops of the wanted device. kAuto takes CUDA where it can be used and the
// CPU elsewhere; `why` then says why not CUDA and is empty otherwise. nullptr
// when the choice is kCuda and it cannot be used; `why` says why.
// index: which of several CUDA devices, modulo their number, so that the
// workers of a machine spread over its devices by rank.
std::unique_ptr<Ops> CreateOps(DeviceChoice choice, std::string* why,
                               int64_t index = 0);

// CUDA's Ops, or nullptr and the reason: no driver, no device, no cuBLAS, built
// without CUDA.
std::unique_ptr<Ops> CreateCudaOps(std::string* why_not, int64_t index = 0);

}  // namespace tributary
