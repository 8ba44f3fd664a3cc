#include "tests/testing/paths.h"

namespace tributary::testing {

std::string SourceFile(const std::string& name) {
  return TRIBUTARY_SOURCE_DIR "/" + name;
}

std::string Program(const std::string& name) {
  return TRIBUTARY_BINARY_DIR "/" + name;
}

}  // namespace tributary::testing
