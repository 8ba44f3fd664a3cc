#include "kernels/device.h"

namespace tributary {

std::unique_ptr<Ops> CreateCudaOps(std::string* why_not, int64_t /*index*/) {
  *why_not = "built without CUDA";
  return nullptr;
}

}  // namespace tributary
