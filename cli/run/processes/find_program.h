// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary {

// The path of another Tributary program, for example "tributary-worker", in the
// directory of this one. NotFound: it is missing or not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// The path of a program of this machine, as a shell finds it: "ssh" in PATH, or
// a path as given. NotFound: it is missing or not executable.
absl::StatusOr<std::string> FindInPath(const std::string& name);

}  // namespace tributary
