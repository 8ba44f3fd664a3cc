#include "kernels/device.h"

namespace tributary {

std::unique_ptr<Ops> CreateOps(DeviceChoice choice, std::string* why,
                               int64_t index) {
  why->clear();
  if (choice == DeviceChoice::kCpu) return CreateCpuOps();
  std::string why_not;
  std::unique_ptr<Ops> ops = CreateCudaOps(&why_not, index);
  if (ops != nullptr) return ops;
  if (choice == DeviceChoice::kCuda) {
    *why = "device: cuda cannot be used: " + why_not;
    return nullptr;
  }
  *why = "using the CPU: " + why_not;
  return CreateCpuOps();
}

}  // namespace tributary
