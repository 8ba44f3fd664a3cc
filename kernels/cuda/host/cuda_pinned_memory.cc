// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/device.h"

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

std::unique_ptr<PinnedMemory> PinCudaMemory(Ops& ops, void* memory,
                                            size_t bytes) {
  const int device = static_cast<CudaOps&>(ops).device();
  if (cudaSetDevice(device) == cudaSuccess &&
      cudaHostRegister(memory, bytes, cudaHostRegisterPortable) ==
          cudaSuccess) {
    return std::make_unique<CudaPinnedMemory>(memory);
  }
  cudaGetLastError();  // the next launch must not report it
  return nullptr;
}

}  // namespace tributary
