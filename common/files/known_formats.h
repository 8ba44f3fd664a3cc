// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tributary {

// Returns the end of a message about a file that is not in the wanted format:
// what the file looks like by its first bytes, and what to do, as in " (looks
// like a Git LFS pointer; fetch the file with git lfs pull)". Empty: no known
// format.
std::string LooksLike(absl::string_view begin);

}  // namespace tributary
