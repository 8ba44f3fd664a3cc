// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tributary {

// Returns the first place at which two lists, which are read side by side, have
// files that by their names do not belong together; nullopt: none is known.
//
// Compares the parts of the paths in which the files of a list differ, with
// numbers by their values: x1.npy belongs to y01.npy, and a_x.npy to a-y.npy.
// If the lists do not have the same parts, it is enough that the words in the
// names agree. Otherwise all numbers are compared, and at last each number by
// itself, unless both lists are in the order of their numbers.
std::optional<size_t> FirstMispaired(const std::vector<std::string>& files,
                                     const std::vector<std::string>& others);

}  // namespace tributary
