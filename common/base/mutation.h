// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Planted defects that test the tests: the simulator must find each one
// (tests/simulation/mutation_test.cc). Product code plants one in a condition:
//
//   if (incarnation < fence && !TRIBUTARY_MUTATED("no-incarnation-fence"))
//
// Nothing in the product chooses a defect, so in its programs the macro is
// false. The simulator plants the one that the environment variable
// TRIBUTARY_MUTATION names (tests/simulation/simulate_main.cc).
namespace tributary::mutation {

// Set before the first simulated job; empty: no defect.
inline constinit std::string_view planted;

}  // namespace tributary::mutation

#define TRIBUTARY_MUTATED(name)               \
  (!::tributary::mutation::planted.empty() && \
   ::tributary::mutation::planted == (name))
