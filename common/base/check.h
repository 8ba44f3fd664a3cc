#pragma once

#include <cstdio>
#include <cstdlib>

// For our own bugs only: what comes from a file, a flag or the network gets a
// status instead (docs/style.md). Depends on nothing, kernels use it too.
#define TRIBUTARY_CHECK(condition)                                          \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                             \
      std::abort();                                                         \
    }                                                                       \
  } while (false)
