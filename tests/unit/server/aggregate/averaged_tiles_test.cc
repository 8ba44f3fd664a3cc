#include "server/aggregate/averaged_tiles.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/ops.h"

namespace tributary {
namespace {

constexpr int64_t kElements = 2 * kTileElements + 17;

Contribution Constant(uint32_t rank, float value, uint64_t samples) {
  const std::vector<float> gradient(kElements, value);
  Contribution c;
  c.rank = rank;
  c.samples = samples;
  if (samples > 0) {
    c.payload = Payload::Copy(gradient.data(), kElements * sizeof(float));
  }
  c.crc32c = c.payload.ScanFloats().crc32c;
  return c;
}

std::vector<float> Average(const std::vector<Contribution>& arrivals) {
  GradientAggregator aggregator(
      {.num_workers = static_cast<int>(arrivals.size())});
  for (const Contribution& c : arrivals) {
    EXPECT_EQ(aggregator.Add(c), GradientAggregator::Verdict::kAdded);
  }
  std::vector<float> mean(kElements, -1);
  const auto ops = CreateCpuOps();
  ForEachAveragedTile(*ops, aggregator, kElements,
                      [&](int64_t begin, int64_t n, const float* gradient) {
                        std::copy_n(gradient, n, mean.data() + begin);
                      });
  return mean;
}

// 1e8 and -1e8 swallow the 1 unless they meet first: a sum that tells its
// order. Four equal shares scale by 1/4 exactly.
TEST(AveragedTilesTest, SumsInRankOrderWhateverTheArrival) {
  const Contribution a = Constant(0, 1e8f, 4), b = Constant(1, -1e8f, 4),
                     c = Constant(2, 1.0f, 4), d = Constant(3, 1.0f, 4);
  const std::vector<float> in_order = Average({a, b, c, d});
  EXPECT_EQ(in_order[0], 0.5f);
  EXPECT_EQ(Average({d, b, c, a}), in_order);
  EXPECT_EQ(Average({c, a, d, b}), in_order);
}

TEST(AveragedTilesTest, WeighsBySamplesAndLeavesOutWhoHasNone) {
  const std::vector<float> mean = Average(
      {Constant(0, 4.0f, 3), Constant(1, 99.0f, 0), Constant(2, 8.0f, 1)});
  EXPECT_EQ(mean, std::vector<float>(kElements, 5.0f));
}

TEST(AveragedTilesTest, NobodyHasSamplesGivesZero) {
  EXPECT_EQ(Average({Constant(0, 1.0f, 0), Constant(1, 1.0f, 0)}),
            std::vector<float>(kElements, 0.0f));
}

}  // namespace
}  // namespace tributary
