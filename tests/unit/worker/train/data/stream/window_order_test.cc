// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/window_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/train/data/batches/sampler.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<uint32_t> WholeEpoch(const WindowOrder& order, int64_t epoch) {
  std::vector<uint32_t> all;
  for (int64_t w = 0; w < order.num_windows(); ++w) {
    const std::vector<uint32_t> rows = order.Rows(epoch, w);
    EXPECT_EQ(order.Begin(w), static_cast<int64_t>(all.size()));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(order.Begin(order.num_windows()), order.rows());
  return all;
}

TEST(WindowOrderTest, EveryRowComesOnceInEveryEpoch) {
  for (int64_t rows : {1, 2, 9, 10, 11, 97, 100, 1000}) {
    for (int64_t chunk : {1, 3, 10, 64}) {
      for (int64_t chunks : {1, 2, 7}) {
        const WindowOrder order({.rows = rows,
                                 .shuffle_seed = 5,
                                 .chunk_rows = chunk,
                                 .window_chunks = chunks});
        for (int64_t epoch : {0, 1, 9}) {
          std::vector<uint32_t> all = WholeEpoch(order, epoch);
          std::sort(all.begin(), all.end());
          std::vector<uint32_t> wanted(rows);
          std::iota(wanted.begin(), wanted.end(), 0u);
          ASSERT_EQ(all, wanted) << rows << " " << chunk << " " << chunks;
        }
      }
    }
  }
}

TEST(WindowOrderTest, AWindowHasTheRowsOfItsChunks) {
  const WindowOrder order(
      {.rows = 1000, .shuffle_seed = 7, .chunk_rows = 10, .window_chunks = 8});
  EXPECT_EQ(order.num_windows(), 13);  // 100 chunks
  for (int64_t w = 0; w < order.num_windows(); ++w) {
    std::map<int64_t, int> rows_of_chunk;
    for (uint32_t row : order.Rows(/*epoch=*/2, w)) ++rows_of_chunk[row / 10];
    EXPECT_LE(rows_of_chunk.size(), 8u);
    EXPECT_GE(rows_of_chunk.size(), 7u);  // windows are about equally large
    for (const auto& [chunk, rows] : rows_of_chunk) EXPECT_EQ(rows, 10);
  }
}

TEST(WindowOrderTest, EpochsAndSeedsDiffer) {
  const auto epoch = [](uint64_t seed, int64_t number) {
    return WholeEpoch(WindowOrder({.rows = 500,
                                   .shuffle_seed = seed,
                                   .chunk_rows = 5,
                                   .window_chunks = 10}),
                      number);
  };
  EXPECT_EQ(epoch(1, 0), epoch(1, 0));
  EXPECT_NE(epoch(1, 0), epoch(1, 1));
  EXPECT_NE(epoch(1, 0), epoch(2, 0));
}

// Worked with the same formulas in Python's integers.
TEST(WindowOrderTest, IsTheSameEverywhereAndForEver) {
  const WindowOrder order(
      {.rows = 11, .shuffle_seed = 1, .chunk_rows = 2, .window_chunks = 3});
  ASSERT_EQ(order.num_windows(), 2);
  EXPECT_THAT(order.Rows(0, 0), ElementsAre(8, 6, 7, 9, 5, 4));
  EXPECT_THAT(order.Rows(0, 1), ElementsAre(3, 2, 10, 0, 1));
}

TEST(WindowOrderTest, OneWindowIsTheOrderOfRowsInMemory) {
  const WindowOrder order(
      {.rows = 60, .shuffle_seed = 3, .chunk_rows = 10, .window_chunks = 6});
  ASSERT_EQ(order.num_windows(), 1);
  EXPECT_THAT(order.Rows(4, 0), ElementsAreArray(ShuffledOrder(60, 3, 4)));
}

TEST(WindowOrderTest, WithoutShuffleRowsComeInTheOrderOfTheFile) {
  const WindowOrder order(
      {.rows = 10, .shuffle_seed = {}, .chunk_rows = 2, .window_chunks = 2});
  EXPECT_THAT(WholeEpoch(order, 3), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(WindowOrderTest, APositionIsInTheWindowThatHoldsIt) {
  for (int64_t rows : {1, 10, 99, 1003}) {
    const WindowOrder order(
        {.rows = rows, .shuffle_seed = 3, .chunk_rows = 4, .window_chunks = 6});
    for (int64_t position = 0; position < rows; ++position) {
      const int64_t window = order.WindowOf(position);
      EXPECT_LE(order.Begin(window), position);
      EXPECT_LT(position, order.Begin(window + 1));
    }
  }
}

TEST(WindowOrderTest, AWindowFitsTheBuffer) {
  for (int64_t row_bytes : {1, 100, 3000, 1 << 21}) {
    const WindowOrder::Options options =
        WindowOrder::ForBuffer(1 << 20, 1, row_bytes, 1 << 20);
    EXPECT_GE(options.chunk_rows, 1);
    EXPECT_GE(options.window_chunks, 1);
    const int64_t bytes =
        options.chunk_rows * options.window_chunks * row_bytes;
    EXPECT_LE(bytes, std::max<int64_t>(row_bytes, 1 << 20)) << row_bytes;
    EXPECT_GE(bytes, (1 << 20) / 2) << row_bytes;
  }
}

// Labels sorted in the file: a window must still have all of them. It has 234
// of the 1639 chunks, 29 of each class with a standard deviation of 5; four of
// them are .7 of the mean.
TEST(WindowOrderTest, SortedRowsAreMixed) {
  const int64_t rows = 1 << 16, classes = 8;
  const WindowOrder order(WindowOrder::ForBuffer(
      rows, /*shuffle_seed=*/1, /*row_bytes=*/100, /*buffer_bytes=*/1 << 20));
  ASSERT_GE(order.num_windows(), 6);
  for (int64_t w = 0; w < order.num_windows(); ++w) {
    std::vector<int> count(classes);
    const std::vector<uint32_t> window = order.Rows(0, w);
    for (uint32_t row : window) ++count[row * classes / rows];
    for (int c : count) {
      EXPECT_NEAR(c, window.size() / classes, .7 * window.size() / classes);
    }
  }
}

}  // namespace
}  // namespace tributary
