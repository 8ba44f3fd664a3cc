// SPDX-License-Identifier: Apache-2.0
// Calls that the ranks of a group make together, over each transport.
#include "worker/rank/collective/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/rank/collective/communicator_fixture.h"

namespace tributary {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Different for every rank and element; sums of few are exact.
std::vector<float> Values(int rank, int64_t n) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>((rank + 1) * 1000 + i);
  }
  return values;
}

float SumOverRanks(int64_t i, int size) {
  return static_cast<float>(size * (size + 1) / 2 * 1000 + size * i);
}

TEST_P(CommunicatorTest, AllReduceGivesEveryRankTheSum) {
  for (int size : {1, 2, 3, 4}) {
    Run(size, [size](int rank, Communicator& group) {
      for (int64_t n : {0, 1, 64, 65, 1000}) {
        std::vector<float> data = Values(rank, n);
        TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), n));
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(data[i], SumOverRanks(i, size)) << i << " of " << n;
        }
      }
    });
  }
}

// 1e8 + 1 - 1e8 is 0 in this order and 1 in others: every rank adds in the
// order of the ranks, in small arrays and in large ones.
TEST_P(CommunicatorTest, SumsInRankOrderWithWeights) {
  if (nccl()) GTEST_SKIP() << "NCCL adds in an order of its own";
  Run(3, [](int rank, Communicator& group) {
    const float parts[] = {1e8f, 1.0f, -0.5e8f};
    const float weights[] = {1.0f, 1.0f, 2.0f};
    for (int64_t n : {5, 500}) {
      std::vector<float> data(n, parts[rank]);
      TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), n, weights));
      EXPECT_THAT(data, Each(0.0f));
    }
  });
}

// Every order of these numbers has the same sum.
TEST_P(CommunicatorTest, EveryRankHasItsWeight) {
  Run(3, [](int rank, Communicator& group) {
    const float weights[] = {0.5f, 0.0f, 4.0f};
    for (int64_t n : {5, 500}) {
      std::vector<float> data(n, static_cast<float>(rank + 2));
      TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), n, weights));
      EXPECT_THAT(data, Each(17.0f));  // 1 + 0 + 16
      const std::vector<int64_t> bounds = {0, 0, 2, n};
      std::fill(data.begin(), data.end(), 2.0f);
      TRIBUTARY_EXPECT_OK(group.ReduceScatter(data.data(), bounds, weights));
      for (int64_t i = bounds[rank]; i < bounds[rank + 1]; ++i) {
        ASSERT_EQ(data[i], 9.0f);
      }
    }
  });
}

TEST_P(CommunicatorTest, ReduceScatterLeavesEachRankItsOwnRange) {
  Run(3, [](int rank, Communicator& group) {
    for (const std::vector<int64_t>& bounds :
         {std::vector<int64_t>{0, 100, 100, 333},
          std::vector<int64_t>{0, 111, 222, 333}}) {
      std::vector<float> data = Values(rank, 333);
      TRIBUTARY_EXPECT_OK(group.ReduceScatter(data.data(), bounds, {}));
      for (int64_t i = bounds[rank]; i < bounds[rank + 1]; ++i) {
        ASSERT_EQ(data[i], SumOverRanks(i, 3));
      }
      // A repeated AllGather makes it whole again.
      TRIBUTARY_EXPECT_OK(group.AllGather(data.data(), bounds));
      for (int64_t i = 0; i < 333; ++i) ASSERT_EQ(data[i], SumOverRanks(i, 3));
    }
  });
}

TEST_P(CommunicatorTest, BroadcastGivesEveryRankTheRootsArray) {
  Run(3, [](int rank, Communicator& group) {
    for (int root : {0, 2}) {
      for (int64_t n : {1, 64, 777}) {
        std::vector<float> data = Values(rank, n);
        TRIBUTARY_EXPECT_OK(group.Broadcast(data.data(), n, root));
        EXPECT_EQ(data, Values(root, n));
      }
    }
  });
}

TEST_P(CommunicatorTest, MessagesToOneRankArriveInOrder) {
  Run(2, [](int rank, Communicator& group) {
    float first = 1, second = 2, a = 0, b = 0;
    if (rank == 0) {
      auto one = group.StartSend(&first, 1, 1);
      auto two = group.StartSend(&second, 1, 1);
      TRIBUTARY_EXPECT_OK(two->Wait());
      TRIBUTARY_EXPECT_OK(one->Wait());
    } else {
      TRIBUTARY_EXPECT_OK(group.Receive(&a, 1, 0));
      TRIBUTARY_EXPECT_OK(group.Receive(&b, 1, 0));
      EXPECT_THAT((std::vector<float>{a, b}), ElementsAre(1, 2));
    }
    TRIBUTARY_EXPECT_OK(Meet(group));
  });
}

// Both ways at once, as neighbouring pipeline stages do.
TEST_P(CommunicatorTest, RanksMayWaitForTheirSendsFirst) {
  Run(2, [](int rank, Communicator& group) {
    std::vector<float> out = Values(rank, 5000), in(5000);
    auto received = group.StartReceive(in.data(), 5000, 1 - rank);
    auto sent = group.StartSend(out.data(), 5000, 1 - rank);
    TRIBUTARY_EXPECT_OK(sent->Wait());
    TRIBUTARY_EXPECT_OK(received->Wait());
    EXPECT_EQ(in, Values(1 - rank, 5000));
  });
}

TEST_P(CommunicatorTest, ReceivesMayBeWaitedForInAnyOrder) {
  Run(2, [](int rank, Communicator& group) {
    float values[] = {1, 2, 3};
    std::vector<std::unique_ptr<PendingTransfer>> transfers;
    if (rank == 0) {
      for (float& value : values) {
        transfers.push_back(group.StartSend(&value, 1, 1));
      }
      for (auto& transfer : transfers) TRIBUTARY_EXPECT_OK(transfer->Wait());
      return;
    }
    float got[3] = {};
    for (float& value : got) {
      transfers.push_back(group.StartReceive(&value, 1, 0));
    }
    for (int i : {1, 0, 2}) {
      TRIBUTARY_EXPECT_OK(transfers[i]->Wait());
      EXPECT_EQ(got[i], values[i]);
    }
  });
}

TEST_P(CommunicatorTest, RanksMaySendToEachOtherAtOnce) {
  Run(2, [](int rank, Communicator& group) {
    std::vector<float> out = Values(rank, 5000), in(5000);
    auto sent = group.StartSend(out.data(), 5000, 1 - rank);
    auto received = group.StartReceive(in.data(), 5000, 1 - rank);
    TRIBUTARY_EXPECT_OK(received->Wait());
    TRIBUTARY_EXPECT_OK(sent->Wait());
    EXPECT_EQ(in, Values(1 - rank, 5000));
  });
}

TEST_P(CommunicatorTest, CountsWhatItMoves) {
  Run(4, [](int, Communicator& group) {
    std::vector<float> data(1600);
    TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), 1600));
    // 2 (W - 1) / W of the array.
    EXPECT_EQ(group.bytes_sent(), 2 * 3 * 400 * sizeof(float));
    EXPECT_EQ(group.bytes_received(), group.bytes_sent());
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CommunicatorTest,
                         ::testing::Values("in-process", "gloo", "staged",
                                           "nccl", "nccl-device"),
                         [](const auto& info) {
                           return info.param == "gloo"          ? "Gloo"
                                  : info.param == "staged"      ? "Staged"
                                  : info.param == "nccl"        ? "FakeNccl"
                                  : info.param == "nccl-device" ? "Nccl"
                                                                : "InProcess";
                         });

TEST(EvenBoundsTest, CutsAtCacheLines) {
  EXPECT_THAT(EvenBounds(100, 3), ElementsAre(0, 32, 64, 100));
  EXPECT_THAT(EvenBounds(5, 2), ElementsAre(0, 0, 5));
  EXPECT_THAT(EvenBounds(0, 2), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace tributary
