// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tributary {

// The end of a message about a file of another format than was wanted: what it
// looks like by its first bytes, and what to do, as in " (looks like a Git LFS
// pointer; fetch the file with git lfs pull)". Empty: like nothing known.
std::string LooksLike(absl::string_view begin);

}  // namespace tributary
