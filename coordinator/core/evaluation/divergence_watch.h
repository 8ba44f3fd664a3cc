// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// Notices when training diverges: the loss of a step is not a number, or the
// mean of the last kWindow losses is above kFactor times the first one of the
// job, or of the first job in a chain of resumed ones. A plain object.
class DivergenceWatch {
 public:
  static constexpr int64_t kWindow = 10;
  static constexpr double kFactor = 10;

  // Continues after this first loss; one without a step is unknown.
  void Begin(const v1::FirstLoss& first) { first_ = first; }
  const v1::FirstLoss& first() const { return first_; }

  // The mean loss of a step, in the order of steps.
  void Add(int64_t step, double loss);

  // A sentence that says how training diverges, once; empty: it does not, or
  // that was said before.
  std::string TakeNotice();

 private:
  v1::FirstLoss first_;      // its step is 0 before the first one
  std::deque<double> last_;  // at most kWindow
  bool told_ = false;
  std::string notice_;
};

}  // namespace tributary
