// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tributary::testing {

// Gradients that leave a signature in the weights. A tagged tensor has one
// element (row) per step and one counter element. Rank r's gradient of step t
// is -8^r in row t, -1 in the counter and 0 elsewhere. With plain SGD, rate 1
// and weights starting at zero, each row becomes a base-8 number whose digit r
// counts rank r's contributions to step t, and the counter becomes the sum of
// all digits. So the weights themselves show lost and repeated contributions.
class ContributionTags {
 public:
  // Every number must be exact in float32: 8^5 < 2^24.
  static constexpr int kMaxWorkers = 5;

  ContributionTags(int workers, int64_t steps)
      : workers_(workers), steps_(steps) {}

  int64_t size() const { return steps_ + 1; }  // elements

  void Fill(uint32_t rank, int64_t step, absl::Span<float> gradient) const;

  // For contributions that are applied one by one: returns the number of each
  // rank's steps in these weights. Internal when a contribution counts twice, a
  // rank's contributions have a gap, or the counter disagrees.
  absl::StatusOr<std::vector<int64_t>> StepsIn(
      absl::Span<const float> weights) const;

  // For steps whose contributions are averaged with equal samples: OK when row
  // t, for t < version, is the mean over at least `at_least` ranks, each
  // counted once, and every later row is empty.
  absl::Status CheckMeans(absl::Span<const float> weights, int64_t version,
                          int at_least) const;

 private:
  const int workers_;
  const int64_t steps_;
};

}  // namespace tributary::testing
