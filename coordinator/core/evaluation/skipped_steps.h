// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tributary {

// Counts the steps that changed nothing because a gradient was not finite
// (nonfinite: skip). A plain object.
class SkippedSteps {
 public:
  // `earlier`: the skipped steps of the jobs that this one continues.
  explicit SkippedSteps(int64_t earlier = 0) : count_(earlier) {}

  // Adds the skipped steps that an earlier coordinator of the job recorded.
  void Continue(int64_t recorded) { count_ += recorded; }

  // Counts a step. Call it in the order of steps. There is a sentence about the
  // first one that this coordinator counts, and about the job's tenth,
  // hundredth and so on.
  void Add(int64_t step) {
    ++count_;
    newest_.push_back(step);
    if (newest_.size() > kMaxNewest) newest_.pop_front();
    if (told_ && count_ != next_) return;
    told_ = true;
    while (next_ <= count_) next_ *= 10;
    notices_.push_back(absl::StrCat(
        "step ", step, " changed nothing, because a gradient was not finite",
        count_ > 1 ? absl::StrCat(" (", count_, " such steps so far)") : "",
        "; the logs of the servers, or else of the workers, name the tensor"));
  }
  // Takes the sentences since the last call.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

  int64_t count() const { return count_; }
  // The skipped steps up to `step`, which must be one of the last steps.
  int64_t CountUpTo(int64_t step) const {
    int64_t count = count_;
    for (auto it = newest_.rbegin(); it != newest_.rend() && *it > step; ++it) {
      --count;
    }
    return count;
  }

 private:
  static constexpr size_t kMaxNewest = 10'000;

  int64_t count_;
  std::deque<int64_t> newest_;
  bool told_ = false;
  int64_t next_ = 1;  // the count of the next sentence
  std::vector<std::string> notices_;
};

}  // namespace tributary
