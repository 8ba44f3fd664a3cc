// SPDX-License-Identifier: Apache-2.0
#include "kernels/nccl_api.h"
#include "kernels/nccl_arithmetic.h"

namespace tributary {

std::unique_ptr<NcclApi> OpenNccl(Ops* /*ops*/, std::string* why_not) {
  *why_not = "built without NCCL";
  return nullptr;
}

std::string NcclArithmeticOf(const Ops& /*ops*/) { return ""; }

}  // namespace tributary
