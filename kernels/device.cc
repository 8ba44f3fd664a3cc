// SPDX-License-Identifier: Apache-2.0
#include "kernels/device.h"

#include <stdlib.h>

#include "kernels/cpu/correlation.h"
#include "kernels/cpu/gemm.h"

namespace tributary {

// Defined in kernels/cuda, or in no_cuda.cc there in a build without CUDA.
std::unique_ptr<Ops> CreateCudaOpsBeside(const Ops& ops, std::string* why_not);
std::unique_ptr<DeviceEvent> CreateCudaEvent(Ops& ops, std::string* why_not);
std::string CudaArithmeticOf(const Ops& ops);

namespace {

class HostEvent final : public DeviceEvent {
 public:
  void Record(Ops& /*ops*/) override {}
  void Await(Ops& /*ops*/) override {}
};

}  // namespace

void SetDeviceEnvironment() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

std::unique_ptr<Ops> CreateOps(DeviceChoice choice, std::string* why,
                               int64_t index, ProductPrecision precision) {
  why->clear();
  if (choice == DeviceChoice::kCpu) return CreateCpuOps(precision);
  std::string why_not;
  std::unique_ptr<Ops> ops = CreateCudaOps(&why_not, index, precision);
  if (ops != nullptr) return ops;
  if (choice == DeviceChoice::kCuda) {
    *why = "device: cuda cannot be used: " + why_not;
    return nullptr;
  }
  *why = "using the CPU: " + why_not;
  return CreateCpuOps(precision);
}

std::string ArithmeticOf(const Ops& ops) {
  if (!ops.is_host()) return CudaArithmeticOf(ops);
  return "cpu, " + BlasName() +
         (&BestCorrelations() == &PlainCorrelations()
              ? ", plain convolutions"
              : ", convolutions with AVX2");
}

std::unique_ptr<Ops> CreateOpsBeside(const Ops& ops, std::string* why_not) {
  return ops.is_host() ? CreateCpuOps() : CreateCudaOpsBeside(ops, why_not);
}

std::unique_ptr<DeviceEvent> CreateDeviceEvent(Ops& ops, std::string* why_not) {
  if (ops.is_host()) return std::make_unique<HostEvent>();
  return CreateCudaEvent(ops, why_not);
}

}  // namespace tributary
