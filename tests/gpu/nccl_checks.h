#pragma once

#include <string>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

struct NcclCheck {
  std::string name;
  std::string error;  // empty: as it shall be
};

// Every operation of NCCL among one rank on the device of `ops`: connected,
// used and closed. Empty, and why, where there is no NCCL.
std::vector<NcclCheck> CheckNccl(Ops& ops, std::string* why_not);

}  // namespace tributary::testing
