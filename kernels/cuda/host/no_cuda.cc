// SPDX-License-Identifier: Apache-2.0
#include "kernels/device.h"

namespace tributary {

std::unique_ptr<Ops> CreateCudaOps(std::string* why_not, int64_t /*index*/,
                                   ProductPrecision /*precision*/) {
  *why_not = "built without CUDA";
  return nullptr;
}

// Never called: in this build every Ops is the host's.
std::unique_ptr<Ops> CreateCudaOpsBeside(const Ops& /*ops*/,
                                         std::string* why_not) {
  return CreateCudaOps(why_not);
}
std::unique_ptr<DeviceEvent> CreateCudaEvent(Ops& /*ops*/,
                                             std::string* why_not) {
  *why_not = "built without CUDA";
  return nullptr;
}
std::string CudaArithmeticOf(const Ops& ops) { return ops.device_name(); }

}  // namespace tributary
