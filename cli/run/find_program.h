#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// The path of another program of Tributary, "tributary-worker": they stand
// beside this one. NotFound: it is not there or not a program.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// The path of a program of this machine, as a shell finds it: "ssh" in PATH, or
// a path as it is. NotFound: it is not there or not a program.
absl::StatusOr<std::string> FindInPath(const std::string& name);

}  // namespace tributary
