// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tributary {

// "45.2k samples/s", or "48 steps/s".
std::string RateText(double rate, bool counts_steps);

// The state of training, as the progress line shows it.
struct ProgressView {
  int64_t step = 0;
  int64_t total_steps = 0;     // 0: the end is open
  int64_t epoch = 0;           // from 1; 0: the job has no epochs
  int64_t epochs = 0;          // of the whole job
  std::optional<double> loss;  // nullopt: none is known, and none is shown
  double samples_per_second = 0;
  // True: samples_per_second counts steps; the program does not count samples.
  bool counts_steps = false;
  double eta_seconds = -1;  // negative: unknown
};

// One line of at most `width` columns for a terminal. If there is little room
// the bar shrinks first, then parts are dropped from the right; step and
// percent remain:
//   epoch 2/5 [======>         ]  38% 713/1875  loss 0.3412  45.2k/s  ETA 0:26
// If the end is open, there is no bar, and only the present epoch is shown:
//   epoch 2  step 713  loss 0.3412  45.2k/s
std::string BarLine(const ProgressView& view, int width);

// The same for a pipe:
//   step 713/1875 (38%), epoch 2/5: loss 0.3412, 45.2k samples/s, ETA 0:26
//   step 713, epoch 2: loss 0.3412, 45.2k samples/s
std::string PlainLine(const ProgressView& view);

// "epoch 2/5: test accuracy 0.8612, loss 0.3871" for the set "test", or "step
// 713: ..." if view.epoch is 0; names in alphabetical order.
std::string EvaluationLine(const ProgressView& view, absl::string_view set,
                           const std::map<std::string, double>& metrics);

// "accuracy 0.8612, loss 0.3871"
std::string MetricsText(const std::map<std::string, double>& metrics);

}  // namespace tributary
