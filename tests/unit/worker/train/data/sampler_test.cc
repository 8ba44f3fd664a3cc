// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/batches/sampler.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ShardedSampler MakeSampler(BatchCut cut, int rank,
                           std::optional<uint64_t> seed = std::nullopt) {
  auto sampler = ShardedSampler::Create({cut, rank, seed});
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

std::vector<int64_t> RowsOf(ShardedSampler& sampler, int64_t epoch,
                            int64_t batch) {
  const absl::Span<const int64_t> rows = sampler.Rows(epoch, batch);
  return {rows.begin(), rows.end()};
}

TEST(ShardedSamplerTest, RanksStrideThroughTheGlobalBatch) {
  const BatchCut cut{/*rows=*/10, /*global_batch=*/4, /*world=*/2};
  ShardedSampler first = MakeSampler(cut, 0), second = MakeSampler(cut, 1);
  EXPECT_EQ(cut.batches_per_epoch(), 3);
  EXPECT_THAT(first.Rows(0, 0), ElementsAre(0, 2));
  EXPECT_THAT(second.Rows(0, 0), ElementsAre(1, 3));
  EXPECT_THAT(first.Rows(0, 1), ElementsAre(4, 6));
  EXPECT_THAT(first.Rows(0, 2), ElementsAre(8));
  EXPECT_THAT(second.Rows(0, 2), ElementsAre(9));
}

TEST(ShardedSamplerTest, ThirtyTwoRowsOverThreeRanksAreElevenElevenTen) {
  const BatchCut cut{/*rows=*/100, /*global_batch=*/32, /*world=*/3};
  EXPECT_EQ(cut.RankRows(0, 0), 11);
  EXPECT_EQ(cut.RankRows(0, 1), 11);
  EXPECT_EQ(cut.RankRows(0, 2), 10);
  // 100 = 3 * 32 + 4: the last batch gives 2, 1, 1.
  EXPECT_EQ(cut.GlobalRows(3), 4);
  EXPECT_EQ(cut.RankRows(3, 0), 2);
  EXPECT_EQ(cut.RankRows(3, 1), 1);
  EXPECT_EQ(cut.RankRows(3, 2), 1);
}

TEST(ShardedSamplerTest, ARankMayHaveNoRowInTheLastBatch) {
  ShardedSampler last = MakeSampler({/*rows=*/5, 4, /*world=*/2}, 1);
  EXPECT_THAT(last.Rows(0, 0), ElementsAre(1, 3));
  EXPECT_THAT(last.Rows(0, 1), ElementsAre());
}

// Takes an epoch apart by rank and puts it together again.
void ExpectEveryRowOnce(const BatchCut& cut, std::optional<uint64_t> seed) {
  ShardedSampler alone = MakeSampler({cut.rows, cut.global_batch, 1}, 0, seed);
  std::vector<ShardedSampler> ranks;
  for (int r = 0; r < cut.world; ++r) {
    ranks.push_back(MakeSampler(cut, r, seed));
  }
  std::vector<int> seen(cut.rows);
  for (int64_t batch = 0; batch < cut.batches_per_epoch(); ++batch) {
    const std::vector<int64_t> whole = RowsOf(alone, 3, batch);
    ASSERT_EQ(static_cast<int64_t>(whole.size()), cut.GlobalRows(batch));
    std::vector<int64_t> joined(whole.size(), -1);
    for (int r = 0; r < cut.world; ++r) {
      const std::vector<int64_t> part = RowsOf(ranks[r], 3, batch);
      ASSERT_EQ(static_cast<int64_t>(part.size()), cut.RankRows(batch, r));
      for (size_t i = 0; i < part.size(); ++i) {
        joined.at(r + i * cut.world) = part[i];
        ++seen.at(part[i]);
      }
    }
    ASSERT_EQ(joined, whole);
  }
  EXPECT_EQ(seen, std::vector<int>(cut.rows, 1));
}

TEST(ShardedSamplerTest,
     EveryRowComesOnceAnEpochAndRanksInterleaveToOneWorker) {
  for (int64_t rows : {1, 2, 7, 64, 1000, 1797}) {
    for (int64_t global_batch : {1, 3, 32, 128, 5000}) {
      for (int world : {1, 2, 3, 8}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << " rows, batch " << global_batch << ", world "
                     << world);
        const BatchCut cut{rows, global_batch, world};
        ExpectEveryRowOnce(cut, std::nullopt);
        ExpectEveryRowOnce(cut, /*seed=*/7);
      }
    }
  }
}

// Expected orders: the formula of ShuffledOrder, worked in Python's integers.
TEST(ShuffledOrderTest, IsTheSameEverywhereAndForEver) {
  EXPECT_THAT(ShuffledOrder(10, /*seed=*/1, /*epoch=*/0),
              ElementsAre(5, 0, 3, 7, 1, 9, 8, 4, 2, 6));
  EXPECT_THAT(ShuffledOrder(10, /*seed=*/1, /*epoch=*/1),
              ElementsAre(7, 2, 4, 0, 8, 1, 9, 5, 6, 3));
  EXPECT_THAT(ShuffledOrder(10, /*seed=*/2, /*epoch=*/0),
              ElementsAre(6, 3, 4, 2, 9, 0, 8, 7, 5, 1));
  const std::vector<uint32_t> order = ShuffledOrder(60000, 1, 4);
  EXPECT_THAT(std::vector<uint32_t>(order.begin(), order.begin() + 5),
              ElementsAre(36738, 56235, 37995, 48521, 9218));
  EXPECT_THAT(std::vector<uint32_t>(order.end() - 5, order.end()),
              ElementsAre(19236, 33394, 15253, 16227, 7991));
}

TEST(ShuffledOrderTest, EveryPositionIsEquallyLikely) {
  // 24 orders of 4 rows over 24000 epochs: 1000 each, deviation 31.
  std::map<std::vector<uint32_t>, int> counts;
  for (int64_t epoch = 0; epoch < 24000; ++epoch) {
    ++counts[ShuffledOrder(4, /*seed=*/9, epoch)];
  }
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 1000, 155) << ::testing::PrintToString(order);
  }
}

TEST(ShardedSamplerTest, EpochsMayBeVisitedInAnyOrder) {
  const BatchCut cut{/*rows=*/50, /*global_batch=*/8, /*world=*/2};
  ShardedSampler forward = MakeSampler(cut, 1, 5);
  const std::vector<int64_t> late = RowsOf(forward, 4, 2);
  const std::vector<int64_t> early = RowsOf(forward, 1, 2);
  ShardedSampler other = MakeSampler(cut, 1, 5);
  EXPECT_EQ(RowsOf(other, 1, 2), early);
  EXPECT_EQ(RowsOf(other, 4, 2), late);
  EXPECT_NE(early, late);
}

TEST(ShardedSamplerTest, ImpossibleOptionsAreRefused) {
  const auto message = [](BatchCut cut, int rank) {
    return std::string(
        ShardedSampler::Create({cut, rank, {}}).status().message());
  };
  EXPECT_THAT(message({0, 4, 2}, 0), HasSubstr("rows, got 0"));
  EXPECT_THAT(message({int64_t{1} << 32, 4, 2}, 0), HasSubstr("4294967296"));
  EXPECT_THAT(message({4, 0, 2}, 0), HasSubstr("at least 1 row, got 0"));
  EXPECT_THAT(message({4, 4, 0}, 0), HasSubstr("at least 1 rank, got 0"));
  EXPECT_THAT(message({4, 4, 2}, 2), HasSubstr("from 0 below 2, got 2"));
  EXPECT_THAT(message({4, 4, 2}, -1), HasSubstr("from 0 below 2, got -1"));
}

TEST(BatchCutTest, AGlobalBatchLargerThanAllRowsDoesNotOverflow) {
  const BatchCut cut{5, std::numeric_limits<int64_t>::max(), 2};
  EXPECT_EQ(cut.batches_per_epoch(), 1);
  EXPECT_EQ(cut.GlobalRows(0), 5);
  EXPECT_EQ(cut.RankRows(0, 1), 2);
}

}  // namespace
}  // namespace tributary
