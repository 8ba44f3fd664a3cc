#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// The path of another program of Tributary, "tributary-worker": they stand
// beside this one. NotFound: it is not there or not a program.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace tributary
