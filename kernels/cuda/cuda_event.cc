#include <cuda_runtime.h>

#include <utility>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/device.h"

namespace tributary {

class CudaEvent final : public DeviceEvent {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }

  void Record(Ops& ops) override {
    auto& cuda = static_cast<CudaOps&>(ops);
    cuda.Record(CudaStatus(cudaEventRecord(event_, cuda.Stream())));
  }
  void Await(Ops& ops) override {
    auto& cuda = static_cast<CudaOps&>(ops);
    cuda.Record(CudaStatus(cudaStreamWaitEvent(cuda.Stream(), event_, 0)));
  }

 private:
  const cudaEvent_t event_;
};

std::unique_ptr<Ops> CreateCudaOpsBeside(const Ops& ops, std::string* why_not) {
  return CudaOps::Create(static_cast<const CudaOps&>(ops).device(),
                         ProductPrecision::kFloat32, why_not);
}

std::unique_ptr<DeviceEvent> CreateCudaEvent(Ops& ops, std::string* why_not) {
  cudaEvent_t event = nullptr;
  DeviceStatus status =
      CudaStatus(cudaSetDevice(static_cast<CudaOps&>(ops).device()));
  if (status.ok()) {
    status =
        CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<CudaEvent>(event);
}

}  // namespace tributary
