// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace tributary {

// Notices when training diverges: the loss of a step is not a number, or the
// mean of the last kWindow losses is above kFactor times the first one. A plain
// object.
class DivergenceWatch {
 public:
  static constexpr int64_t kWindow = 10;
  static constexpr double kFactor = 10;

  // The mean loss of a step, in the order of steps.
  void Add(int64_t step, double loss);

  // A sentence that says how training diverges, once; empty: it does not, or
  // that was said before.
  std::string TakeNotice();

 private:
  int64_t first_step_ = 0;  // 0: none has come
  double first_ = 0;
  std::deque<double> last_;  // at most kWindow
  bool told_ = false;
  std::string notice_;
};

}  // namespace tributary
