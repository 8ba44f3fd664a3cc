#pragma once

// Planted defects, so that tests can be tested: each must be found by the
// simulator (tests/simulation/mutation_test.cc). A condition of the product
// says
//
//   if (incarnation < fence && !TRIBUTARY_MUTATED("no-incarnation-fence"))
//
// Only the second build of the simulated libraries has TRIBUTARY_MUTATIONS; it
// plants the one defect that the environment's TRIBUTARY_MUTATION names. In all
// other builds the macro is `false`.
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
