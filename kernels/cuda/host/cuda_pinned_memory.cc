// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/cuda/host/cuda_status.h"

namespace tributary {
namespace {

class CudaPinnedMemory final : public PinnedMemory {
 public:
  explicit CudaPinnedMemory(void* memory) : memory_(memory) {}
  ~CudaPinnedMemory() override { cudaHostUnregister(memory_); }

 private:
  void* const memory_;
};

}  // namespace

std::unique_ptr<PinnedMemory> CudaOps::Pin(void* memory, size_t bytes,
                                           std::string* why_not) {
  cudaError_t error = cudaSetDevice(device_);
  if (error == cudaSuccess) {
    error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  }
  if (error == cudaSuccess) return std::make_unique<CudaPinnedMemory>(memory);
  cudaGetLastError();  // the next launch must not report it
  *why_not = CudaStatus(error).message();
  return nullptr;
}

}  // namespace tributary
