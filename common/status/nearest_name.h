#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tributary {

// Insertions, deletions, replacements and swaps of neighbours that turn `a`
// into `b` (optimal string alignment). Bytes.
int EditDistance(absl::string_view a, absl::string_view b);

// The name that a person who wrote `written` most likely meant; empty when none
// is near. The first of equally near names.
std::string NearestName(absl::string_view written,
                        const std::vector<std::string>& names);

// What helps after a wrong name: `; did you mean "epochs"?`, or when nothing is
// near `; <owner> knows epochs, steps`.
std::string NameHint(absl::string_view written,
                     const std::vector<std::string>& names,
                     absl::string_view owner);

}  // namespace tributary
