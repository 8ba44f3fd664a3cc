// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/check.h"

namespace tributary {

// A pointer for each member of a oneof, by the number of its field. A member is
// described in a file of its own, which defines `void Add...(Table*)`; CMake
// makes the list of these functions from the names of the files
// (tributary_name_list in cmake/TributaryTargets.cmake).
template <typename Pointer>
class CaseTable {
 public:
  void Add(int number, Pointer value) {
    TRIBUTARY_CHECK(Find(number) == nullptr);
    const auto at = static_cast<size_t>(number);
    if (by_number_.size() <= at) by_number_.resize(at + 1);
    by_number_[at] = value;
  }

  // Null: no file has added it.
  Pointer Find(int number) const {
    const auto at = static_cast<size_t>(number);
    return at < by_number_.size() ? by_number_[at] : nullptr;
  }

  // Null where no file has added one.
  const std::vector<Pointer>& by_number() const { return by_number_; }

 private:
  std::vector<Pointer> by_number_;
};

}  // namespace tributary
