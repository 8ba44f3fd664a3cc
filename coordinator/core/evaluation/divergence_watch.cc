// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/divergence_watch.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tributary {

void DivergenceWatch::Add(int64_t step, double loss) {
  if (told_) return;
  if (!std::isfinite(loss)) {
    told_ = true;
    notice_ = absl::StrFormat(
        "training diverges: the loss of step %d is %s; a lower learning_rate "
        "or a clip_norm may help",
        step, absl::StrCat(loss));  // "nan" whatever its sign
    return;
  }
  if (first_.step() == 0) {
    first_.set_step(step);
    first_.set_loss(loss);
  }
  last_.push_back(loss);
  if (static_cast<int64_t>(last_.size()) > kWindow) last_.pop_front();
  if (static_cast<int64_t>(last_.size()) < kWindow || first_.loss() <= 0)
    return;
  const double mean =
      std::accumulate(last_.begin(), last_.end(), 0.0) / kWindow;
  if (mean <= kFactor * first_.loss()) return;
  told_ = true;
  notice_ = absl::StrFormat(
      "training diverges: the mean loss of the last %d steps to step %d is "
      "%.4g, that of step %d was %.4g; a lower learning_rate or a clip_norm "
      "may help",
      kWindow, step, mean, first_.step(), first_.loss());
}

std::string DivergenceWatch::TakeNotice() { return std::exchange(notice_, ""); }

}  // namespace tributary
