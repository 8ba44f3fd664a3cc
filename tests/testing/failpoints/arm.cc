// SPDX-License-Identifier: Apache-2.0
// Linked into the programs of a build with tests: reads their failpoints from
// the environment before main() starts a thread.
#include <cstdlib>

#include "tests/testing/failpoints/failpoints.h"

namespace tributary::failpoint {
namespace {

[[maybe_unused]] const bool armed_by_environment = [] {
  const char* const entries = std::getenv("TRIBUTARY_FAILPOINT");
  const char* const fired = std::getenv("TRIBUTARY_FAILPOINT_FIRED");
  Arm(entries == nullptr ? "" : entries, fired == nullptr ? "" : fired);
  return true;
}();

}  // namespace
}  // namespace tributary::failpoint
