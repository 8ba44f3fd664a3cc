// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/device_checks.h"

namespace tributary {
class Ops;
}

namespace tributary::testing {

// Connects one rank on the device of `ops`, runs every NCCL operation and
// closes it. Empty, with the reason in `why_not`, when there is no NCCL.
std::vector<DeviceCheck> CheckNccl(Ops& ops, std::string* why_not);

}  // namespace tributary::testing
