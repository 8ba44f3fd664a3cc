// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/testing/golden.h"

namespace tributary::testing {

// Keeps the worst error over tolerance of a golden group and prints it when the
// group is through.
class GoldenScore {
 public:
  // A `tolerance` above 0 replaces that of every tensor.
  explicit GoldenScore(std::string group, double tolerance = 0)
      : group_(std::move(group)), tolerance_(tolerance) {}
  ~GoldenScore() {
    std::printf("[ golden   ] %s: %d cases, worst error/tolerance %.2f in %s\n",
                group_.c_str(), cases_, worst_, where_.c_str());
  }

  void BeginCase(const std::string& id) {
    id_ = id;
    ++cases_;
  }

  template <typename Real>
  void Expect(const GoldenCase& c, const std::string& tensor,
              const std::vector<Real>& got) {
    double ratio = c.ErrorOverTolerance(tensor, got);
    if (tolerance_ > 0) ratio *= c.Tensor(tensor).tolerance / tolerance_;
    EXPECT_LE(ratio, 1) << id_ << " " << tensor;
    if (ratio >= worst_) {
      worst_ = ratio;
      where_ = id_ + " " + tensor;
    }
  }

  int cases() const { return cases_; }
  double worst() const { return worst_; }

 private:
  const std::string group_;
  const double tolerance_;
  std::string id_;
  std::string where_;
  int cases_ = 0;
  double worst_ = 0;
};

}  // namespace tributary::testing
