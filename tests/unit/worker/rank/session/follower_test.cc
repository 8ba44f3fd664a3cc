// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/follower.h"

#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/rank/session/session_fixture.h"

namespace tributary {
namespace {

using testing::SessionTest;
using testing::StatusIs;
using testing::TestProgram;

class FollowerTest : public SessionTest {
 protected:
  // Trains with two ranks and notes the weights after each step.
  void Train(int64_t steps) {
    RunRanks(2, [&](std::unique_ptr<Session> session) {
      TestProgram program;
      ASSERT_TRUE(session->Start(program.Declare()).ok());
      for (int64_t step = 1; step <= steps; ++step) {
        program.Train(*session, step);
        if (session->rank() == 0) trained_.push_back(program.weights());
      }
      EXPECT_TRUE(session->Finish().ok());
    });
  }
  absl::StatusOr<std::unique_ptr<Follower>> Follow() {
    return Follower::Connect({.coordinator = coordinator_->address()});
  }

  std::vector<std::vector<std::vector<float>>> trained_ = {
      TestProgram().weights()};
};

// The two parameters are on two servers.
TEST_F(FollowerTest, ReadsWeightsOfOneStepWhileTrainingGoesOn) {
  Start(Job(/*servers=*/2, /*workers=*/2));
  std::vector<Follower::Weights> reads;
  std::thread reader([&] {
    const auto follower = Follow();
    ASSERT_TRUE(follower.ok()) << follower.status();
    EXPECT_EQ((*follower)->parameters()[0].name, "0.weight");
    EXPECT_EQ((*follower)->parameters()[1].shape, Shape{3});
    while (true) {
      auto weights = (*follower)->Read(
          reads.empty() ? 0 : reads.back().newest_version + 1);
      if (!weights.ok()) {
        EXPECT_THAT(weights.status(),
                    StatusIs(absl::StatusCode::kOutOfRange, "the job is done"));
        break;
      }
      reads.push_back(*std::move(weights));
    }
  });
  Train(400);
  reader.join();
  ASSERT_GE(reads.size(), 3u);
  int64_t before = -1;
  for (const Follower::Weights& read : reads) {
    EXPECT_GT(read.oldest_version, before);
    before = read.newest_version;
    ASSERT_EQ(read.oldest_version, read.newest_version);
    EXPECT_EQ(read.tensors, trained_[read.newest_version]);
  }
}

TEST_F(FollowerTest, WaitsForTheJobsBeginningAndLearnsItsEnd) {
  Start(Job(1, 2));
  EXPECT_THAT(
      Follower::Connect(
          {.coordinator = coordinator_->address(), .timeout = absl::Seconds(1)})
          .status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded, "the job still waits for"));
  Train(1);
  coordinator_->control().WaitUntilEveryoneKnowsEnd(absl::Seconds(2));
  EXPECT_THAT(Follow().status(),
              StatusIs(absl::StatusCode::kOutOfRange, "the job is done"));
}

TEST_F(FollowerTest, CancelEndsARead) {
  Start(Job(1, 1));
  std::unique_ptr<Follower> follower;
  std::thread reader;
  RunRanks(1, [&](std::unique_ptr<Session> session) {
    TestProgram program;
    ASSERT_TRUE(session->Start(program.Declare()).ok());
    follower = Follow().value();
    reader = std::thread([&] {
      EXPECT_THAT(follower->Read(1'000'000).status(),
                  StatusIs(absl::StatusCode::kCancelled, ""));
    });
    follower->Cancel();
    reader.join();
    EXPECT_TRUE(session->Finish().ok());
  });
}

}  // namespace
}  // namespace tributary
