// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tributary {

// Whether two lists of as many files, which are read side by side, have their
// names in different orders: the first place with files that do not belong
// together. Nullopt: none is known.
//
// Compared are the parts of the paths in which the files of a list differ, with
// numbers by their values: x1.npy belongs to y01.npy, and a_x.npy to a-y.npy.
// If these are not the same in both lists, their numbers are compared, and then
// every single one.
std::optional<size_t> FirstMispaired(const std::vector<std::string>& files,
                                     const std::vector<std::string>& others);

}  // namespace tributary
