// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>

// Only for our own bugs. A fault in a file, a flag or network input returns a
// status instead (docs/style.md). Depends on nothing, since kernels use it too.
#define TRIBUTARY_CHECK(condition)                                          \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                             \
      std::abort();                                                         \
    }                                                                       \
  } while (false)
