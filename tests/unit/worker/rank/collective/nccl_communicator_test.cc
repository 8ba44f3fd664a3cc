// SPDX-License-Identifier: Apache-2.0
// How groups end, well or badly; communicator_test checks what they do before
// that.
#include "worker/rank/collective/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/nccl/device_like_ops.h"
#include "tests/testing/nccl/fake_nccl.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::FakeNccl;
using testing::StatusIs;

class NcclCommunicatorTest : public ::testing::Test {
 protected:
  using Body = std::function<void(int rank, Communicator& group)>;

  // Runs one thread a rank; connected_ gets each rank's status of connecting.
  void Run(int size, const Body& body) {
    std::vector<std::unique_ptr<Mesh>> sides = CreateInProcessMesh(size);
    const std::unique_ptr<Ops> ops = CreateCpuOps();
    std::vector<std::string> ids(size);
    std::barrier everybody(size);
    connected_.assign(size, absl::OkStatus());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        NcclCommunicator::Options options;
        options.api = fake_.Open(std::to_string(rank),
                                 rank == 1 ? of_rank_1_ : of_others_);
        options.ops = rank == 1 ? &ops_of_rank_1_ : ops.get();
        options.mesh = std::move(sides[rank]);
        options.messages = messages_;
        options.timeouts.connect = connect_timeout_;
        options.timeouts.explain = options.timeouts.skew =
            absl::Milliseconds(300);
        options.exchange =
            [&](std::string bytes) -> absl::StatusOr<std::vector<std::string>> {
          ids[rank] = std::move(bytes);
          exchanged_ += ids[rank].size();
          everybody.arrive_and_wait();
          return ids;
        };
        auto group = NcclCommunicator::Connect(std::move(options));
        connected_[rank] = group.status();
        if (group.ok()) body(rank, **group);
        if (together_) everybody.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fake_.live_streams(), 0);
    EXPECT_EQ(fake_.live_events(), 0);
    EXPECT_EQ(fake_.opened(), fake_.closed() + fake_.aborted());
  }

  FakeNccl fake_;
  FakeNccl::Behaviour of_rank_1_, of_others_;
  testing::DeviceLikeOps ops_of_rank_1_;
  bool messages_ = false;
  std::atomic<size_t> exchanged_ = 0;  // bytes, to connect by
  bool together_ = false;              // no rank leaves before all have ended
  absl::Duration connect_timeout_ = absl::Seconds(20);
  std::vector<absl::Status> connected_;
};

TEST_F(NcclCommunicatorTest, AGroupThatEndsTogetherAbortsNothing) {
  messages_ = true;
  Run(3, [](int, Communicator& group) {
    std::vector<float> data(100, 1.0f);
    TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), 100, {}));
  });
  EXPECT_EQ(fake_.opened(), 3 + 2 * 6);  // two ends of each of six directions
  EXPECT_EQ(fake_.aborted(), 0);
}

TEST_F(NcclCommunicatorTest, WithoutMessagesThereIsOneCommunicatorARank) {
  Run(3, [](int, Communicator&) {});
  EXPECT_EQ(fake_.opened(), 3);
}

// A rank's message goes to all ranks by way of the coordinator, whose messages
// have a limit.
TEST_F(NcclCommunicatorTest, WithoutMessagesOneRankNamesTheGroupForAll) {
  Run(4, [](int, Communicator&) {});
  EXPECT_EQ(exchanged_, sizeof(NcclId));
}

TEST_F(NcclCommunicatorTest, AnErrorOfNcclEndsTheCallAndIsKept) {
  together_ = true;
  std::barrier connected(2);
  Run(2, [&](int rank, Communicator& group) {
    connected.arrive_and_wait();
    if (rank == 1) return;
    fake_.FailAsync("remote process exited or there was a network error");
    float data = 1;
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(group.AllReduce(&data, 1, {}),
                  StatusIs(absl::StatusCode::kInternal,
                           "an all-reduce: NCCL: remote process exited"));
    }
  });
  EXPECT_GE(fake_.aborted(), 1);
}

// The device's memory holds what the kernels before the fault have left.
TEST_F(NcclCommunicatorTest, ADeviceThatHasFailedGivesNothingToTheOthers) {
  messages_ = true;
  std::barrier connected(2);
  Run(2, [&](int rank, Communicator& group) {
    connected.arrive_and_wait();
    float sum = 1, received = 5;
    if (rank == 1) {
      ops_of_rank_1_.Fail();
      const auto fault = StatusIs(absl::StatusCode::kInternal,
                                  "device: unspecified launch failure");
      EXPECT_THAT(group.StartSend(&sum, 1, 0)->Wait(), fault);
      EXPECT_THAT(group.AllReduce(&sum, 1, {}), fault);
      return;
    }
    EXPECT_FALSE(group.StartReceive(&received, 1, 1)->Wait().ok());
    EXPECT_FALSE(group.AllReduce(&sum, 1, {}).ok());
    EXPECT_EQ(received, 5);
    EXPECT_EQ(sum, 1);
  });
}

// Otherwise work on the device would wait there for ever.
TEST_F(NcclCommunicatorTest, ACallThatFailsAbortsAllThatItsRankHas) {
  messages_ = true;
  std::barrier connected(2), looked(2);
  Run(2, [&](int rank, Communicator& group) {
    connected.arrive_and_wait();
    if (rank == 0) {
      fake_.FailAsync("remote process exited");
      float data = 1;
      EXPECT_FALSE(group.AllReduce(&data, 1, {}).ok());
      // The group's communicator, and those of the messages there and back.
      EXPECT_EQ(fake_.aborted(), 3);
    }
    looked.arrive_and_wait();
  });
}

TEST_F(NcclCommunicatorTest, AnErrorOfNcclThatALostRankHasCausedNamesIt) {
  std::barrier connected(2);
  Run(2, [&](int rank, Communicator& group) {
    connected.arrive_and_wait();
    if (rank == 1) return group.Abort("killed");
    fake_.FailAsync("remote process exited");
    float data = 1;
    EXPECT_THAT(group.AllReduce(&data, 1, {}),
                StatusIs(absl::StatusCode::kUnavailable,
                         "rank 1 is gone (an all-reduce: NCCL: remote"));
  });
}

TEST_F(NcclCommunicatorTest, ARankThatCannotConnectIsNamedByTheOthers) {
  of_rank_1_.fails_to_connect = true;
  Run(3, [](int, Communicator&) {});
  EXPECT_THAT(connected_[1], StatusIs(absl::StatusCode::kInternal,
                                      "connecting: NCCL: unhandled system"));
  EXPECT_THAT(connected_[0],
              StatusIs(absl::StatusCode::kUnavailable, "rank 1 is gone"));
  EXPECT_THAT(connected_[2], StatusIs(absl::StatusCode::kUnavailable,
                                      "rank 1 is lost, says rank 0"));
}

TEST_F(NcclCommunicatorTest, ConnectingHasADeadline) {
  of_rank_1_.never_connects = true;
  connect_timeout_ = absl::Milliseconds(50);
  Run(2, [](int, Communicator& group) {
    float data = 1;
    group.AllReduce(&data, 1, {}).IgnoreError();
  });
  EXPECT_THAT(connected_[1],
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "rank 0 did not come for 50ms (connecting)"));
}

// A call ends even if it would be done at the first look, as with one rank.
TEST_F(NcclCommunicatorTest, AbortEndsEveryLaterCall) {
  of_others_.settles_after = 0;
  Run(1, [&](int, Communicator& group) {
    std::vector<float> data(10);
    const std::vector<int64_t> bounds = {0, 10};
    TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), 10, {}));
    group.Abort("the step is given up");
    const auto given_up =
        StatusIs(absl::StatusCode::kCancelled, "the step is given up");
    EXPECT_THAT(group.AllReduce(data.data(), 10, {}), given_up);
    EXPECT_THAT(group.AllReduce(data.data(), 0, {}), given_up);
    EXPECT_THAT(group.ReduceScatter(data.data(), bounds, {}), given_up);
    EXPECT_THAT(group.AllGather(data.data(), bounds), given_up);
    EXPECT_THAT(group.Broadcast(data.data(), 10, 0), given_up);
  });
  EXPECT_EQ(fake_.aborted(), 1);
}

TEST_F(NcclCommunicatorTest, AnAbortedTransferLeavesTheMemoryAlone) {
  messages_ = true;
  together_ = true;
  std::vector<float> data(10);
  Run(2, [&](int rank, Communicator& group) {
    if (rank == 1) return;
    auto sent = group.StartSend(data.data(), 10, 1);
    group.Abort("the step is given up");
    sent.reset();  // under way: rank 1 has not come
    EXPECT_GE(fake_.aborted(), 1);
    EXPECT_THAT(group.Send(data.data(), 10, 1),
                StatusIs(absl::StatusCode::kCancelled, "the step is given up"));
  });
}

}  // namespace
}  // namespace tributary
