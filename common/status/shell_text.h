// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tributary {

// The words as one line that a POSIX shell splits into the same words. A word
// is quoted only where it needs it.
std::string ShellText(const std::vector<std::string>& words);

}  // namespace tributary
