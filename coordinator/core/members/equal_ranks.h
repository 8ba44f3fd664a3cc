// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tributary {

// Detects ranks of a program that compute the same gradients, step after step:
// they most likely train on the same rows. A plain object.
class EqualRanks {
 public:
  static constexpr int kSteps = 10;  // in a row

  // samples: StepReport.gradient_sample of a step, by rank; 0: unknown.
  void Add(const std::vector<uint32_t>& samples);

  // Returns once a sentence that names the ranks; empty: no ranks are equal, or
  // they have been named before.
  std::string TakeNotice();

 private:
  // The lowest rank whose samples equal this rank's, and for how many steps.
  struct Twin {
    size_t rank = 0;
    int steps = 0;
  };

  std::vector<Twin> twins_;  // of each rank
  bool told_ = false;
  std::string notice_;
};

}  // namespace tributary
