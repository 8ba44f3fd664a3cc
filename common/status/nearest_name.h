// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tributary {

// The number of byte insertions, deletions, replacements and swaps of
// neighbours that turn `a` into `b` (optimal string alignment distance).
int EditDistance(absl::string_view a, absl::string_view b);

// The name that the writer of `written` most likely meant, or empty when none
// is near. Among equally near names, the first.
std::string NearestName(absl::string_view written,
                        const std::vector<std::string>& names);

// A hint to append to the message about a wrong name: `; did you mean
// "epochs"?`, or `; <owner> knows epochs, steps` when no name is near.
std::string NameHint(absl::string_view written,
                     const std::vector<std::string>& names,
                     absl::string_view owner);

}  // namespace tributary
