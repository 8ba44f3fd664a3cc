// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/paths.h"

#include <cstdlib>

namespace tributary::testing {

std::string SourceFile(const std::string& name) {
  const char* const elsewhere = std::getenv("TRIBUTARY_SOURCE_DIR");
  return std::string(elsewhere != nullptr ? elsewhere : TRIBUTARY_SOURCE_DIR) +
         "/" + name;
}

std::string Program(const std::string& name) {
  return TRIBUTARY_BINARY_DIR "/" + name;
}

}  // namespace tributary::testing
