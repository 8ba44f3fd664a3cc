// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// Notices when training diverges: the loss of a step is not a number, or the
// mean of the last kWindow losses is above kFactor times the first loss of the
// job, or of the first job in a chain of resumed ones. A plain object.
class DivergenceWatch {
 public:
  static constexpr int64_t kWindow = 10;
  static constexpr double kFactor = 10;

  // Continues with an earlier first loss; step 0 means that it is unknown.
  void Begin(const v1::FirstLoss& first) { first_ = first; }
  const v1::FirstLoss& first() const { return first_; }

  // Adds the mean loss of a step. Call it in the order of steps.
  void Add(int64_t step, double loss);

  // Returns once a sentence that says how training diverges; empty if it does
  // not diverge, or if the sentence was returned before.
  std::string TakeNotice();

 private:
  v1::FirstLoss first_;      // step 0 before the first loss
  std::deque<double> last_;  // at most kWindow
  bool told_ = false;
  std::string notice_;
};

}  // namespace tributary
