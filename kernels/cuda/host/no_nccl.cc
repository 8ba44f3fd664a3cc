// SPDX-License-Identifier: Apache-2.0
#include "kernels/nccl_api.h"

namespace tributary {

std::unique_ptr<NcclApi> OpenNccl(Ops* /*ops*/, std::string* why_not) {
  *why_not = "built without NCCL";
  return nullptr;
}

}  // namespace tributary
