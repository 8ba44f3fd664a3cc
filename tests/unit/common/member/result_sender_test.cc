// SPDX-License-Identifier: Apache-2.0
// A worker's evaluations when another coordinator takes over.
#include "common/member/result_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/unit/common/member/fake_coordinator.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ResultSenderTest : public ::testing::Test {
 protected:
  static v1::RegisterResponse OfTerm(uint64_t term) {
    v1::RegisterResponse place;
    place.set_term(term);
    return place;
  }
  absl::Status Report(int64_t step) {
    return sender_.ReportEvaluation(step, 1, v1::EvaluationPart());
  }

  FakeCoordinator coordinator_;
  const std::unique_ptr<CoordinatorClient> client_ = coordinator_.Client();
  ResultSender sender_{client_.get(), OfTerm(1)};
};

// Only the earlier coordinator had the part after step 19. It arrives before
// the part after step 20, whose sender does not know the new term yet.
TEST_F(ResultSenderTest, ALaterPartWaitsUntilTheEarlierIsToldAgain) {
  ASSERT_TRUE(Report(19).ok());
  coordinator_.TakeOver(2);
  std::thread worker([this] { EXPECT_TRUE(Report(20).ok()); });
  EXPECT_TRUE(coordinator_.AwaitAborted());
  EXPECT_TRUE(sender_.Follow(2).ok());
  worker.join();
  EXPECT_THAT(coordinator_.taken(),
              ElementsAre(Pair(1, 19), Pair(2, 19), Pair(2, 20)));
}

// The heartbeats hear of the next coordinator before the answer comes. At that
// time no part is kept that they could send again.
TEST_F(ResultSenderTest, AnAnswerThatComesAfterATakeoverDoesNotCount) {
  coordinator_.BeforeAnswer([this] {
    coordinator_.TakeOver(2);
    EXPECT_TRUE(sender_.Follow(2).ok());
  });
  EXPECT_TRUE(Report(19).ok());
  EXPECT_THAT(coordinator_.taken(), ElementsAre(Pair(1, 19), Pair(2, 19)));
}

TEST_F(ResultSenderTest, EveryPartThatIsNotSavedIsToldAgainInOrder) {
  for (const int64_t step : {3, 1, 2}) ASSERT_TRUE(Report(step).ok());
  coordinator_.SetSaved(2);
  ASSERT_TRUE(Report(4).ok());
  EXPECT_TRUE(sender_.Follow(1).ok()) << "the same coordinator";
  EXPECT_TRUE(sender_.Follow(2).ok());
  EXPECT_THAT(coordinator_.taken(),
              ElementsAre(Pair(1, 3), Pair(1, 1), Pair(1, 2), Pair(1, 4),
                          Pair(2, 3), Pair(2, 4)));
}

// A second passes whenever somebody asks for the time, so that a call is not
// repeated for long.
class HastyClock final : public Clock {
 public:
  int64_t NowMicros() const override { return micros_ += 1'000'000; }

 private:
  mutable std::atomic<int64_t> micros_{0};
};

TEST_F(ResultSenderTest, WhatCouldNotBeToldIsToldAtTheNextBeat) {
  const HastyClock clock;
  const auto client = coordinator_.Client(&clock);
  ResultSender sender(client.get(), OfTerm(1));
  const v1::EvaluationPart part;
  ASSERT_TRUE(sender.ReportEvaluation(19, 1, part).ok());
  coordinator_.TakeOver(2);
  coordinator_.Refuse(true);
  EXPECT_TRUE(absl::IsUnavailable(sender.Follow(2)));
  coordinator_.Refuse(false);
  EXPECT_TRUE(sender.Follow(2).ok());
  ASSERT_TRUE(sender.ReportEvaluation(20, 1, part).ok());
  EXPECT_THAT(coordinator_.taken(),
              ElementsAre(Pair(1, 19), Pair(2, 19), Pair(2, 20)));
}

TEST_F(ResultSenderTest, AnEndOfTheHeartbeatsEndsTheWait) {
  coordinator_.TakeOver(2);
  sender_.Close();
  EXPECT_TRUE(absl::IsAborted(Report(1)));
  EXPECT_THAT(coordinator_.taken(), IsEmpty());
}

TEST_F(ResultSenderTest, SoManyPartsAreKept) {
  constexpr auto kMost = static_cast<int64_t>(ResultSender::kMaxKept);
  for (int64_t step = 1; step <= kMost + 2; ++step) {
    ASSERT_TRUE(Report(step).ok());
  }
  EXPECT_TRUE(sender_.Follow(2).ok());
  const FakeCoordinator::Taken taken = coordinator_.taken();
  ASSERT_EQ(taken.size(), static_cast<size_t>(2 * kMost + 2));
  EXPECT_THAT(taken[static_cast<size_t>(kMost + 2)], Pair(2, 3));
}

}  // namespace
}  // namespace tributary
