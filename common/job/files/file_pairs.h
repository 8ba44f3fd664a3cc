// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tributary {

// The first place at which two lists, which are read side by side, have files
// that do not belong together by their names. Nullopt: none is known.
//
// Compared are the parts of the paths in which the files of a list differ, with
// numbers by their values: x1.npy belongs to y01.npy, and a_x.npy to a-y.npy.
// If these are not the same in both lists, the words in them are enough if they
// agree. Then their numbers are compared, and at last each of these by itself,
// unless both lists are in the order of their numbers.
std::optional<size_t> FirstMispaired(const std::vector<std::string>& files,
                                     const std::vector<std::string>& others);

}  // namespace tributary
