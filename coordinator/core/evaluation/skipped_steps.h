// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace tributary {

// Counts the steps that changed nothing because a gradient was not finite
// (nonfinite: skip). The count begins anew with each coordinator of the run. A
// plain object.
class SkippedSteps {
 public:
  // Counts a step. Returns a sentence for the first skipped step, the tenth,
  // the hundredth and so on; empty for the others.
  std::string Add(int64_t step) {
    if (++count_ != next_) return "";
    next_ *= 10;
    return absl::StrCat(
        "step ", step, " changed nothing, because a gradient was not finite",
        count_ > 1 ? absl::StrCat(" (", count_, " such steps so far)") : "",
        "; the servers' logs name the rank and the tensor");
  }

 private:
  int64_t count_ = 0;
  int64_t next_ = 1;  // the count of the next sentence
};

}  // namespace tributary
