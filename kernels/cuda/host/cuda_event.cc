// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <utility>

#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/cuda/host/cuda_status.h"
#include "kernels/device.h"

namespace tributary {

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(int device, cudaEvent_t event) : device_(device), event_(event) {}
  ~CudaEvent() override {
    cudaSetDevice(device_);
    cudaEventDestroy(event_);
  }

  void Record(Ops& ops) override {
    auto& cuda = static_cast<CudaOps&>(ops);
    cuda.Record(CudaStatus(cudaEventRecord(event_, cuda.Stream())));
  }
  void Await(Ops& ops) override {
    auto& cuda = static_cast<CudaOps&>(ops);
    cuda.Record(CudaStatus(cudaStreamWaitEvent(cuda.Stream(), event_, 0)));
  }

 private:
  const int device_;
  const cudaEvent_t event_;
};

std::unique_ptr<Ops> CreateCudaOpsBeside(const Ops& ops, std::string* why_not) {
  return CudaOps::Create(static_cast<const CudaOps&>(ops).device(),
                         ProductPrecision::kFloat32, why_not);
}

std::unique_ptr<DeviceEvent> CreateCudaEvent(Ops& ops, std::string* why_not) {
  cudaEvent_t event = nullptr;
  const int device = static_cast<CudaOps&>(ops).device();
  DeviceStatus status = CudaStatus(cudaSetDevice(device));
  if (status.ok()) {
    status =
        CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<CudaEvent>(device, event);
}

}  // namespace tributary
