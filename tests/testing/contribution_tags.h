#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tributary::testing {

// Gradients that sign what they did: a tagged tensor has one element a step,
// its row, and one more that counts. Rank r's gradient of step t is -8^r in
// row t, -1 in the counter and 0 elsewhere. Plain SGD with rate 1 from zeros
// then makes of each row a number in base 8 whose digit r says how often rank
// r's contribution to step t is in these weights, and of the counter the sum of
// all digits: who was lost and who was counted twice stands in the weights
// themselves.
class ContributionTags {
 public:
  // So that every number is exact in float32: 8^5 < 2^24.
  static constexpr int kMaxWorkers = 5;

  ContributionTags(int workers, int64_t steps)
      : workers_(workers), steps_(steps) {}

  int64_t size() const { return steps_ + 1; }  // elements

  void Fill(uint32_t rank, int64_t step, absl::Span<float> gradient) const;

  // Where each contribution is applied by itself: how many steps of each rank
  // are in these weights. Internal when one counts twice, when a rank's
  // contributions are not its first ones, or the counter disagrees.
  absl::StatusOr<std::vector<int64_t>> StepsIn(
      absl::Span<const float> weights) const;

  // Where the contributions to a step are averaged and had the same number of
  // samples: OK when row t, for t < version, is the mean over at least
  // `at_least` ranks, each once, and every later row is empty.
  absl::Status CheckMeans(absl::Span<const float> weights, int64_t version,
                          int at_least) const;

 private:
  const int workers_;
  const int64_t steps_;
};

}  // namespace tributary::testing
