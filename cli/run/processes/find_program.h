// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// Returns the path of another Tributary program, for example
// "tributary-worker", in this program's directory. NotFound: it is missing or
// not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// Finds a program of this machine as a shell does: returns the path of "ssh" in
// PATH, or a path as given. NotFound: it is missing or not executable.
absl::StatusOr<std::string> FindInPath(const std::string& name);

}  // namespace tributary
