// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Named places in the code where a test makes a process fail. Each place costs
// one comparison with null. Their actions are in tests/testing/failpoints,
// which only a build with tests links into the programs; the product's object
// files are the same with and without that folder.
namespace tributary::failpoint {

struct Entry;

// The functions that a build with tests calls at these places.
struct Hooks {
  // Counts the visit of a place. Returns the entry that fires now, or null.
  const Entry* (*reach)(std::string_view name);
  // Does the entry's action. True: the caller takes its error branch.
  bool (*act)(const Entry& entry);
};

// Set before main() when the environment names failpoints; else null.
inline constinit const Hooks* hooks = nullptr;

}  // namespace tributary::failpoint

// `statement` is the error branch, such as `return Status`. It runs only if the
// action asks for it (Hooks::act); other actions skip it.
#define TRIBUTARY_FAILPOINT_OR(name, statement)                         \
  do {                                                                  \
    const auto* const failpoint_hooks = ::tributary::failpoint::hooks;  \
    if (failpoint_hooks != nullptr) [[unlikely]] {                      \
      const auto* const failpoint_entry = failpoint_hooks->reach(name); \
      if (failpoint_entry != nullptr &&                                 \
          failpoint_hooks->act(*failpoint_entry)) {                     \
        statement;                                                      \
      }                                                                 \
    }                                                                   \
  } while (false)

// Runs `statement` before the action, for a failpoint just before an effect.
#define TRIBUTARY_FAILPOINT_AFTER(name, statement)                     \
  do {                                                                 \
    const auto* const failpoint_hooks = ::tributary::failpoint::hooks; \
    if (failpoint_hooks != nullptr) [[unlikely]] {                     \
      if (const auto* failpoint_entry = failpoint_hooks->reach(name);  \
          failpoint_entry != nullptr) {                                \
        statement;                                                     \
        failpoint_hooks->act(*failpoint_entry);                        \
      }                                                                \
    }                                                                  \
  } while (false)

#define TRIBUTARY_FAILPOINT(name) TRIBUTARY_FAILPOINT_OR(name, )
