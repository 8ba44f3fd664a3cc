// SPDX-License-Identifier: Apache-2.0
// How a group ends when a rank leaves, is silent or gives up; every transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/rank/collective/communicator_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;

TEST_P(CommunicatorTest, ARankThatLeavesIsNamed) {
  Run(3, [](int rank, Communicator& group) {
    std::vector<float> data(1000);
    TRIBUTARY_EXPECT_OK(group.AllReduce(data.data(), 1000));
    if (rank == 2) return;  // gone for the others
    absl::Status status;
    // Messages that are under way may still arrive.
    for (int i = 0; i < 3 && status.ok(); ++i) {
      status = group.Broadcast(data.data(), 1000, 2);
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, "rank 2"));
  });
}

// A chain: each rank waits only for the next one, and ends when that rank ends.
TEST_P(CommunicatorTest, ARankThatLeavesIsNamedByThoseWhoWaitForOthers) {
  Run(4, [](int rank, Communicator& group) {
    TRIBUTARY_EXPECT_OK(Meet(group));
    if (rank == 3) return;  // gone for the others
    float never = 0;
    EXPECT_THAT(group.Receive(&never, 1, rank + 1),
                StatusIs(absl::StatusCode::kUnavailable, "rank 3 is "));
  });
}

TEST_P(CommunicatorTest, SentencesNameTheRanksOfTheJob) {
  job_ranks_ = {1, 4, 7};
  Run(3, [](int rank, Communicator& group) {
    TRIBUTARY_EXPECT_OK(Meet(group));
    if (rank == 2) return;  // gone for the others
    float never = 0;
    EXPECT_THAT(
        group.Receive(&never, 1, rank + 1),
        StatusIs(absl::StatusCode::kUnavailable,
                 rank == 1 ? "rank 7 is gone" : "rank 7 is lost, says rank 4"));
    EXPECT_EQ(group.waiting_for(), rank == 1 ? 7 : 4);
  });
}

// Over Gloo a deadline closes all connections, so every rank names the one that
// it waited for, as silent or, when that one's deadline passed first, as gone.
// Over NCCL the ranks whose waits have failed tell each other.
TEST_P(CommunicatorTest, ARankThatIsSilentIsNamedByThoseWhoWaitForOthers) {
  const char* const hearsay = GetParam() == "gloo" ? "rank 1 did not come"
                              : nccl()             ? "rank 2 did not come"
                                       : "rank 2 is lost, says rank 1";
  std::barrier everybody(3);
  Run(
      3,
      [&](int rank, Communicator& group) {
        TRIBUTARY_EXPECT_OK(Meet(group));
        float never = 0;
        if (rank < 2) {
          const absl::Status status = group.Receive(&never, 1, rank + 1);
          if (GetParam() == "gloo" && rank == 0 &&
              absl::IsUnavailable(status)) {
            EXPECT_THAT(status.message(),
                        ::testing::HasSubstr("rank 1 is gone"));
          } else {
            EXPECT_THAT(status,
                        StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 rank == 1 ? "rank 2 did not come" : hearsay));
          }
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
          EXPECT_THAT(Meet(group),
                      StatusIs(absl::StatusCode::kDeadlineExceeded, "rank 1"));
        }
        everybody.arrive_and_wait();
      },
      absl::Milliseconds(50));
}

// The other rank stays until the wait is over, so that it is not found gone.
TEST_P(CommunicatorTest, AbortEndsAWaitFromAnotherThread) {
  std::barrier everybody(2);
  Run(2, [&everybody](int rank, Communicator& group) {
    TRIBUTARY_EXPECT_OK(Meet(group));
    if (rank == 1) return everybody.arrive_and_wait();
    float never = 0;
    std::thread aborts([&group] { group.Abort("the job ends"); });
    EXPECT_THAT(group.Receive(&never, 1, 1),
                StatusIs(absl::StatusCode::kCancelled, "the job ends"));
    aborts.join();
    EXPECT_THAT(Meet(group),
                StatusIs(absl::StatusCode::kCancelled, "the job ends"));
    everybody.arrive_and_wait();
  });
}

}  // namespace
}  // namespace tributary
