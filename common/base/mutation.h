// SPDX-License-Identifier: Apache-2.0
#pragma once

// Planted defects that test the tests: the simulator must find each one
// (tests/simulation/mutation_test.cc). Product code plants one in a condition:
//
//   if (incarnation < fence && !TRIBUTARY_MUTATED("no-incarnation-fence"))
//
// Only a second build of the simulated libraries defines TRIBUTARY_MUTATIONS.
// It plants the one defect that the environment variable TRIBUTARY_MUTATION
// names. In all other builds the macro is `false`.
#ifdef TRIBUTARY_MUTATIONS

#include <cstdlib>
#include <string_view>

namespace tributary::mutation {

inline bool Planted(std::string_view name) {
  static const char* const chosen = std::getenv("TRIBUTARY_MUTATION");
  return chosen != nullptr && name == chosen;
}

}  // namespace tributary::mutation

#define TRIBUTARY_MUTATED(name)                                       \
  ([] {                                                               \
    static const bool planted = ::tributary::mutation::Planted(name); \
    return planted;                                                   \
  }())

#else

#define TRIBUTARY_MUTATED(name) false

#endif
