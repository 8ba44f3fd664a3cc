#pragma once

#include <string>
#include <vector>

#include "tests/gpu/device_checks.h"

namespace tributary {
class Ops;
}

namespace tributary::testing {

// Every operation of NCCL among one rank on the device of `ops`: connected,
// used and closed. Empty, and why, where there is no NCCL.
std::vector<DeviceCheck> CheckNccl(Ops& ops, std::string* why_not);

}  // namespace tributary::testing
