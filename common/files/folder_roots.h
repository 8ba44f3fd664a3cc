// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// OK if `path`, with its symbolic links followed, is one of the folders `roots`
// or lies below one; the file need not exist yet. PermissionDenied otherwise,
// with the path and `option`, which gave the roots. Without roots every path is
// OK. The links may change after the call: the check keeps a job from naming
// other files, but does not keep a folder's owner from moving it.
absl::Status CheckBelow(const std::string& path,
                        const std::vector<std::string>& roots,
                        absl::string_view option);

}  // namespace tributary
