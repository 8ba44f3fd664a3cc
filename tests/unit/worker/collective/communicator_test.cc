// The same cases over threads of one process, over Gloo on the loopback,
// through copies of a device's arrays, and over NCCL: a fake one whose ranks
// are threads, and the real one where there is a device for each rank.
#include "worker/collective/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "kernels/device.h"
#include "kernels/nccl_api.h"
#include "kernels/ops.h"
#include "tests/testing/fake_nccl.h"
#include "tests/testing/host_arrays.h"
#include "tests/testing/status_matchers.h"
#include "worker/collective/mesh.h"
#include "worker/collective/nccl_communicator.h"
#include "worker/collective/peer_communicator.h"
#include "worker/collective/staged_communicator.h"

namespace tributary {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeNccl;
using testing::HostArrays;
using testing::StatusIs;

// What ranks tell each other before they are connected.
class Exchange {
 public:
  explicit Exchange(int size) : bytes_(size), missing_(size) {}
  absl::StatusOr<std::vector<std::string>> operator()(int rank,
                                                      std::string bytes) {
    absl::MutexLock lock(&mu_);
    bytes_[rank] = std::move(bytes);
    --missing_;
    const auto complete = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return missing_ == 0;
    };
    mu_.Await(absl::Condition(&complete));
    return bytes_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> bytes_ ABSL_GUARDED_BY(mu_);
  int missing_ ABSL_GUARDED_BY(mu_);
};

class CommunicatorTest : public ::testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<void(int rank, Communicator& group)>;

  bool nccl() const { return GetParam().substr(0, 4) == "nccl"; }

  ExchangeBytes ExchangeOf(int rank) {
    return [this, rank](std::string bytes) {
      return (*exchange_)(rank, std::move(bytes));
    };
  }

  std::unique_ptr<Mesh> Connect(int rank, int size) {
    if (GetParam() != "gloo") return std::move(sides_[rank]);
    absl::StatusOr<std::unique_ptr<Mesh>> mesh =
        ConnectGlooMesh({.rank = rank,
                         .size = size,
                         .host = "127.0.0.1",
                         .exchange = ExchangeOf(rank)});
    EXPECT_TRUE(mesh.ok()) << mesh.status();
    return *std::move(mesh);
  }

  std::unique_ptr<Communicator> MakeNccl(int rank, int size, Ops* ops,
                                         absl::Duration timeout) {
    NcclCommunicator::Options options;
    options.ops = ops;
    std::string why;
    options.api = GetParam() == "nccl"
                      ? fake_.Open("device " + std::to_string(rank))
                      : OpenNccl(ops, &why);
    EXPECT_NE(options.api, nullptr) << why;
    options.mesh = Connect(rank, size);
    options.exchange = ExchangeOf(rank);
    options.messages = true;
    options.timeout = timeout;
    options.leave_timeout = absl::Milliseconds(20);
    options.explain_timeout = options.skew = absl::Milliseconds(300);
    options.ranks = job_ranks_;
    auto made = NcclCommunicator::Connect(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  // Small pieces, so that every call has several.
  std::unique_ptr<Communicator> Make(int rank, int size, Ops* ops,
                                     absl::Duration timeout) {
    if (GetParam() == "nccl") return MakeNccl(rank, size, ops, timeout);
    if (GetParam() == "nccl-device") {
      return std::make_unique<HostArrays>(ops,
                                          MakeNccl(rank, size, ops, timeout));
    }
    const bool staged = GetParam() == "staged";
    auto peer = std::make_unique<PeerCommunicator>(
        PeerCommunicator::Options{.mesh = Connect(rank, size),
                                  .ops = staged ? host_ops_.get() : ops,
                                  .timeout = timeout,
                                  .piece_elements = 48,
                                  .small_elements = 64,
                                  .ranks = job_ranks_});
    if (!staged) return peer;
    return std::make_unique<StagedCommunicator>(
        StagedCommunicator::Options{.host = std::move(peer), .ops = ops});
  }

  // One thread a rank.
  void Run(int size, const Body& body,
           absl::Duration timeout = absl::Seconds(20)) {
    sides_ = CreateInProcessMesh(size);
    exchange_.emplace(size);
    std::vector<std::unique_ptr<Ops>> ops;
    for (int rank = 0; rank < size; ++rank) {
      std::string why;
      ops.push_back(GetParam() == "nccl-device" ? CreateCudaOps(&why, rank)
                                                : CreateCpuOps());
      if (ops.back() == nullptr) GTEST_SKIP() << "no device: " << why;
      if (GetParam() != "nccl-device") continue;
      const auto api = OpenNccl(ops.back().get(), &why);
      if (api == nullptr) GTEST_SKIP() << why;
      if (!devices_.insert(api->device_id()).second) {
        devices_.clear();
        GTEST_SKIP() << "fewer devices than ranks, " << size;
      }
    }
    devices_.clear();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        const std::unique_ptr<Communicator> group =
            Make(rank, size, ops[rank].get(), timeout);
        EXPECT_EQ(group->backend(), GetParam() == "staged" ? "in-process"
                                    : nccl()               ? "nccl"
                                                           : GetParam());
        body(rank, *group);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<int> job_ranks_;

 private:
  std::vector<std::unique_ptr<Mesh>> sides_;
  std::optional<Exchange> exchange_;
  std::set<std::string> devices_;
  FakeNccl fake_;
  const std::unique_ptr<Ops> host_ops_ = CreateCpuOps();
};

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
// order of the ranks, on the way of small arrays and of large ones.
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

// Numbers of which every order has the same sum.
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

TEST_P(CommunicatorTest, AllToAllTransposesBlocks) {
  Run(3, [](int rank, Communicator& group) {
    std::vector<float> in(3 * 50), out(3 * 50);
    for (int to = 0; to < 3; ++to) {
      std::fill_n(in.begin() + 50 * to, 50, static_cast<float>(10 * rank + to));
    }
    TRIBUTARY_EXPECT_OK(group.AllToAll(in.data(), out.data(), 50));
    for (int from = 0; from < 3; ++from) {
      EXPECT_THAT(std::vector<float>(out.begin() + 50 * from,
                                     out.begin() + 50 * (from + 1)),
                  Each(static_cast<float>(10 * from + rank)));
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
    TRIBUTARY_EXPECT_OK(group.Barrier());
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

TEST_P(CommunicatorTest, ARankThatLeavesIsNamed) {
  Run(3, [](int rank, Communicator& group) {
    std::vector<float> data(1000);
    TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), 1000));
    if (rank == 2) return;  // gone for the others
    absl::Status status;
    // What is under way may still arrive.
    for (int i = 0; i < 3 && status.ok(); ++i) {
      status = group.Broadcast(data.data(), 1000, 2);
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, "rank 2"));
  });
}

// A chain: each waits for the next one alone, and ends when that has.
TEST_P(CommunicatorTest, ARankThatLeavesIsNamedByThoseWhoWaitForOthers) {
  Run(4, [](int rank, Communicator& group) {
    TRIBUTARY_EXPECT_OK(group.Barrier());
    if (rank == 3) return;  // gone for the others
    float never = 0;
    EXPECT_THAT(group.Receive(&never, 1, rank + 1),
                StatusIs(absl::StatusCode::kUnavailable, "rank 3 is "));
  });
}

TEST_P(CommunicatorTest, SentencesNameTheRanksOfTheJob) {
  job_ranks_ = {1, 4, 7};
  Run(3, [](int rank, Communicator& group) {
    TRIBUTARY_EXPECT_OK(group.Barrier());
    if (rank == 2) return;  // gone for the others
    float never = 0;
    EXPECT_THAT(
        group.Receive(&never, 1, rank + 1),
        StatusIs(absl::StatusCode::kUnavailable,
                 rank == 1 ? "rank 7 is gone" : "rank 7 is lost, says rank 4"));
    EXPECT_EQ(group.waiting_for(), rank == 1 ? 7 : 4);
  });
}

// Gloo closes all connections with a deadline, so there everybody names the one
// that it waited for itself; over NCCL those who have waited in vain tell each
// other so.
TEST_P(CommunicatorTest, ARankThatIsSilentIsNamedByThoseWhoWaitForOthers) {
  const char* const hearsay = GetParam() == "gloo" ? "rank 1 did not come"
                              : nccl()             ? "rank 2 did not come"
                                       : "rank 2 is lost, says rank 1";
  std::barrier everybody(3);
  Run(
      3,
      [&](int rank, Communicator& group) {
        TRIBUTARY_EXPECT_OK(group.Barrier());
        float never = 0;
        if (rank < 2) {
          EXPECT_THAT(group.Receive(&never, 1, rank + 1),
                      StatusIs(absl::StatusCode::kDeadlineExceeded,
                               rank == 1 ? "rank 2 did not come" : hearsay));
        }
        everybody.arrive_and_wait();
      },
      absl::Milliseconds(500));
}

TEST_P(CommunicatorTest, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  std::barrier everybody(2);
  Run(
      2,
      [&everybody](int rank, Communicator& group) {
        if (rank == 0) {
          EXPECT_THAT(group.Barrier(),
                      StatusIs(absl::StatusCode::kDeadlineExceeded, "rank 1"));
        }
        everybody.arrive_and_wait();
      },
      absl::Milliseconds(50));
}

// The other rank stays until it is over, so that it is not found gone.
TEST_P(CommunicatorTest, AbortEndsAWaitFromAnotherThread) {
  std::barrier everybody(2);
  Run(2, [&everybody](int rank, Communicator& group) {
    TRIBUTARY_EXPECT_OK(group.Barrier());
    if (rank == 1) return everybody.arrive_and_wait();
    float never = 0;
    std::thread aborts([&group] { group.Abort("the job ends"); });
    EXPECT_THAT(group.Receive(&never, 1, 1),
                StatusIs(absl::StatusCode::kCancelled, "the job ends"));
    aborts.join();
    EXPECT_THAT(group.Barrier(),
                StatusIs(absl::StatusCode::kCancelled, "the job ends"));
    everybody.arrive_and_wait();
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
