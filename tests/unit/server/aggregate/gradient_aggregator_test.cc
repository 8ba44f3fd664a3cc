// SPDX-License-Identifier: Apache-2.0
#include "server/aggregate/gradient_aggregator.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/sync/sync_policy.h"

namespace tributary {
namespace {

using Verdict = GradientAggregator::Verdict;

Contribution Make(uint32_t rank, int64_t step, uint32_t crc,
                  uint64_t incarnation = 1, uint64_t samples = 8) {
  Contribution c;
  c.rank = rank;
  c.step = step;
  c.crc32c = crc;
  c.incarnation = incarnation;
  c.samples = samples;
  return c;
}

TEST(GradientAggregatorTest, ARepeatedContributionCountsOnce) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kHeld);
  EXPECT_EQ(aggregator.contributed().steps(0), 1);
  EXPECT_EQ(aggregator.MissingRanks(), std::vector<int>{1});
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12)), Verdict::kAdded);
  EXPECT_TRUE(BulkSynchronous().MayApply(aggregator.contributed(), 0));
}

TEST(GradientAggregatorTest, ALateRepetitionOfTheCommittedStepIsRecognized) {
  GradientAggregator aggregator({.num_workers = 1});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kAdded);
  aggregator.Commit();
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kCommitted);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99)), Verdict::kConflict);
  EXPECT_EQ(aggregator.contributed().steps(0), 1);
}

TEST(GradientAggregatorTest, OtherBytesOrSamplesAreAConflict) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 12)), Verdict::kConflict);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, 1, /*samples=*/9)),
            Verdict::kConflict);
}

TEST(GradientAggregatorTest, AReplacementFencesItsPredecessor) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/2)), Verdict::kHeld);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)),
            Verdict::kFenced);
}

TEST(GradientAggregatorTest, NobodyWaitsForARankThatHoldsNothingOfTheBlock) {
  GradientAggregator aggregator(
      {.num_workers = 3, .members = {true, false, true}});
  const BulkSynchronous policy;
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(aggregator.MissingRanks(), (std::vector<int>{0, 2}));
    EXPECT_EQ(aggregator.Add(Make(2, step, 11, 1, /*samples=*/6)),
              Verdict::kAdded);
    EXPECT_FALSE(policy.MayApply(aggregator.contributed(), step));
    EXPECT_EQ(aggregator.Add(Make(0, step, 12, 1, /*samples=*/2)),
              Verdict::kAdded);
    EXPECT_TRUE(policy.MayApply(aggregator.contributed(), step));
    EXPECT_EQ(aggregator.Weights(), (std::vector<float>{0.25f, 0, 0.75f}));
    aggregator.Commit();
    EXPECT_EQ(aggregator.wanted_step(0), step + 1);
    EXPECT_EQ(aggregator.wanted_step(2), step + 1);
  }
  aggregator.StartAt(7);
  EXPECT_EQ(aggregator.MissingRanks(), (std::vector<int>{0, 2}));
}

TEST(GradientAggregatorTest, AFenceHoldsBeforeTheReplacementSendsAnything) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  EXPECT_TRUE(aggregator.Fence(0, 3));
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/2)),
            Verdict::kFenced);
  EXPECT_FALSE(aggregator.Fence(0, 2));
  EXPECT_TRUE(aggregator.Fence(0, 3)) << "asked again";
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12, /*incarnation=*/1)), Verdict::kAdded);
}

// A server that takes over a shard has seen none of the earlier holders.
TEST(GradientAggregatorTest, FormerHoldersAreFencedFromTheStart) {
  GradientAggregator aggregator({.num_workers = 2, .fences = {5, 1}});
  for (const int64_t start : {0, 7}) {
    aggregator.StartAt(start);
    EXPECT_FALSE(aggregator.Fence(0, 4));
    EXPECT_TRUE(aggregator.IsFenced(0, 4));
    EXPECT_EQ(aggregator.Add(Make(0, start, 11, /*incarnation=*/4)),
              Verdict::kFenced);
    EXPECT_EQ(aggregator.Add(Make(1, start, 12, /*incarnation=*/1)),
              Verdict::kAdded);
    EXPECT_EQ(aggregator.Add(Make(0, start, 11, /*incarnation=*/5)),
              Verdict::kAdded);
    EXPECT_TRUE(aggregator.Fence(0, 9));
    EXPECT_TRUE(aggregator.IsFenced(0, 8));
    EXPECT_FALSE(aggregator.IsFenced(0, 9));
  }
}

// For instance, its new process has another kind of device. In the open step
// the new bits replace the earlier ones: the rank is missing until they come.
TEST(GradientAggregatorTest, ARankThatComputesOtherBitsGivesTheOpenStepAnew) {
  GradientAggregator aggregator({.num_workers = 2});
  const BulkSynchronous policy;
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  EXPECT_TRUE(aggregator.Fence(0, 3, /*recomputes=*/true));
  EXPECT_EQ(aggregator.contributed().steps(0), 0);
  EXPECT_EQ(aggregator.MissingRanks(), (std::vector<int>{0, 1}));
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12)), Verdict::kAdded);
  EXPECT_FALSE(policy.MayApply(aggregator.contributed(), 0));
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/3)), Verdict::kAdded);
  EXPECT_TRUE(policy.MayApply(aggregator.contributed(), 0));
  EXPECT_EQ(aggregator.contributions()[0].crc32c, 99u);
}

TEST(GradientAggregatorTest, TheFenceAskedAgainKeepsWhatCameSince) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  EXPECT_TRUE(aggregator.Fence(0, 3, /*recomputes=*/true));
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/3)), Verdict::kAdded);
  EXPECT_TRUE(aggregator.Fence(0, 3, /*recomputes=*/true));
  EXPECT_EQ(aggregator.contributed().steps(0), 1);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 98, /*incarnation=*/3)),
            Verdict::kConflict)
      << "of one incarnation";
}

// A block that has the step already keeps it.
TEST(GradientAggregatorTest, OtherBitsForAStepThatIsAppliedAreARepetition) {
  GradientAggregator aggregator({.num_workers = 1});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  aggregator.Commit();
  EXPECT_TRUE(aggregator.Fence(0, 3, /*recomputes=*/true));
  EXPECT_EQ(aggregator.contributed().steps(0), 1);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/3)),
            Verdict::kCommitted);
  EXPECT_EQ(aggregator.Add(Make(0, 1, 13, /*incarnation=*/3)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(0, 1, 14, /*incarnation=*/3)),
            Verdict::kConflict);
  EXPECT_TRUE(aggregator.Fence(0, 4));
  aggregator.Commit();
  EXPECT_EQ(aggregator.Add(Make(0, 1, 14, /*incarnation=*/4)),
            Verdict::kConflict)
      << "3 and 4 compute alike";
}

// The mean is taken: what comes now is too late to be in it.
TEST(GradientAggregatorTest, OtherBitsForAStepThatIsBeingAppliedAreToo) {
  GradientAggregator aggregator({.num_workers = 1});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  aggregator.Close();
  EXPECT_TRUE(aggregator.Fence(0, 3, /*recomputes=*/true));
  EXPECT_EQ(aggregator.contributed().steps(0), 1);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/3)), Verdict::kHeld);
  EXPECT_EQ(aggregator.contributions()[0].crc32c, 11u);
}

// The contribution's bits are in the sum and cannot be taken out.
TEST(GradientAggregatorTest, OtherBitsForAContributionThatIsAddedAreToo) {
  GradientAggregator aggregator({.num_workers = 3});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12, /*incarnation=*/1)), Verdict::kAdded);
  aggregator.MarkAdded(1);
  EXPECT_TRUE(aggregator.Fence(0, 3, /*recomputes=*/true));
  EXPECT_TRUE(aggregator.Fence(1, 4, /*recomputes=*/true));
  EXPECT_EQ(aggregator.MissingRanks(), (std::vector<int>{1, 2}));
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/3)), Verdict::kHeld);
  EXPECT_EQ(aggregator.Add(Make(1, 0, 98, /*incarnation=*/4)), Verdict::kAdded);
  EXPECT_EQ(aggregator.contributions()[0].crc32c, 11u);
  EXPECT_EQ(aggregator.contributions()[1].crc32c, 98u);
}

TEST(GradientAggregatorTest, AnAddedContributionKeepsItsIdentity) {
  GradientAggregator aggregator({.num_workers = 2});
  Contribution c = Make(0, 0, 11);
  c.payload = Payload::Copy("four", 4);
  EXPECT_EQ(aggregator.Add(c), Verdict::kAdded);
  EXPECT_EQ(aggregator.held_bytes(), 4u);
  EXPECT_EQ(aggregator.arrived(), 1);
  aggregator.MarkAdded(1);
  EXPECT_EQ(aggregator.held_bytes(), 0u);
  EXPECT_EQ(aggregator.Add(c), Verdict::kHeld);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 12)), Verdict::kConflict);
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12)), Verdict::kAdded);
  aggregator.Commit();
  EXPECT_EQ(aggregator.added(), 0);
  EXPECT_EQ(aggregator.Add(c), Verdict::kCommitted);
}

Contribution Announcing(uint32_t rank, uint64_t samples, uint64_t total) {
  Contribution c = Make(rank, 0, 11, 1, samples);
  c.total_samples = total;
  return c;
}

TEST(GradientAggregatorTest, AnAnnouncedTotalGivesTheWeightsInAdvance) {
  GradientAggregator aggregator({.num_workers = 3});
  EXPECT_EQ(aggregator.Add(Announcing(2, 4, 16)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Weights(), (std::vector<float>{0, 0, 0.25f}));
  aggregator.Add(Announcing(0, 4, 16));
  aggregator.Add(Announcing(1, 8, 16));
  EXPECT_EQ(aggregator.Weights(), (std::vector<float>{0.25f, 0.5f, 0.25f}));
}

TEST(GradientAggregatorTest, ATotalThatContradictsAnotherIsRefused) {
  GradientAggregator aggregator({.num_workers = 3});
  EXPECT_EQ(aggregator.Add(Announcing(0, 4, 16)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Announcing(1, 8, 17)), Verdict::kWrongTotal);
  EXPECT_EQ(aggregator.MissingRanks(), (std::vector<int>{1, 2}));
  EXPECT_EQ(aggregator.announced_samples(), 16u);
  EXPECT_EQ(aggregator.Add(Announcing(1, 8, 16)), Verdict::kAdded);
}

TEST(GradientAggregatorTest, SamplesThatDoNotAddUpAreRefused) {
  GradientAggregator aggregator({.num_workers = 3});
  EXPECT_EQ(aggregator.Add(Announcing(0, 17, 16)), Verdict::kWrongTotal);
  EXPECT_EQ(aggregator.Add(Announcing(0, 4, 16)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Announcing(1, 13, 16)), Verdict::kWrongTotal);
  EXPECT_EQ(aggregator.Add(Announcing(1, 8, 0)), Verdict::kAdded)
      << "announces nothing";
  EXPECT_EQ(aggregator.Add(Announcing(2, 5, 0)), Verdict::kWrongTotal);
  EXPECT_EQ(aggregator.Add(Announcing(2, 3, 16)), Verdict::kWrongTotal)
      << "1 of 16 would be missing";
  EXPECT_EQ(aggregator.Add(Announcing(2, 4, 16)), Verdict::kAdded);
  // The next step has another total.
  aggregator.Commit();
  Contribution next = Make(0, 1, 11, 1, /*samples=*/2);
  next.total_samples = 6;
  EXPECT_EQ(aggregator.Add(next), Verdict::kAdded);
}

// Their sum is 4 modulo 2^64.
TEST(GradientAggregatorTest, SamplesCannotOverflowToTheTotal) {
  GradientAggregator aggregator({.num_workers = 3});
  aggregator.Add(Announcing(0, UINT64_MAX, 0));
  aggregator.Add(Announcing(1, 4, 0));
  EXPECT_EQ(aggregator.Add(Announcing(2, 1, 4)), Verdict::kWrongTotal);
}

// A step without every rank has another total.
TEST(GradientAggregatorTest, OnlyStepsThatWaitForAllRanksHaveATotal) {
  for (const bool gathers : {false, true}) {
    GradientAggregator aggregator(
        {.num_workers = 2, .gathers = gathers, .drops_late = true});
    EXPECT_EQ(aggregator.Add(Announcing(0, 4, 16)), Verdict::kAdded);
    EXPECT_EQ(aggregator.announced_samples(), 0u);
    EXPECT_EQ(aggregator.Add(Announcing(1, 4, 17)), Verdict::kAdded);
  }
}

// The replacement computes from the newest weights, which may be other ones.
TEST(GradientAggregatorTest, WithBackupWorkersAReplacementMaySendOtherBytes) {
  GradientAggregator aggregator({.num_workers = 2, .drops_late = true});
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11, /*incarnation=*/1)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 12, /*incarnation=*/1)),
            Verdict::kConflict);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 12, /*incarnation=*/2)), Verdict::kHeld);
}

TEST(GradientAggregatorTest, OnlyTheOpenStepAndTheOneBeforeAreTaken) {
  GradientAggregator aggregator({.num_workers = 1});
  EXPECT_EQ(aggregator.Add(Make(0, 1, 11)), Verdict::kTooNew);
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(aggregator.Add(Make(0, step, 11)), Verdict::kAdded);
    aggregator.Commit();
  }
  EXPECT_EQ(aggregator.Add(Make(0, 1, 11)), Verdict::kTooOld);
  EXPECT_EQ(aggregator.Add(Make(0, -1, 11)), Verdict::kTooOld);
}

TEST(GradientAggregatorTest, WeighsBySamples) {
  GradientAggregator aggregator({.num_workers = 3});
  aggregator.Add(Make(2, 0, 1, 1, /*samples=*/10));
  aggregator.Add(Make(0, 0, 1, 1, /*samples=*/30));
  aggregator.Add(Make(1, 0, 1, 1, /*samples=*/0));
  EXPECT_EQ(aggregator.Weights(), (std::vector<float>{0.75f, 0.0f, 0.25f}));
}

TEST(GradientAggregatorTest, WithBackupWorkersALateContributionIsDropped) {
  GradientAggregator aggregator({.num_workers = 3, .drops_late = true});
  aggregator.Add(Make(0, 0, 11));
  aggregator.Add(Make(2, 0, 13));
  aggregator.Commit();
  EXPECT_EQ(aggregator.applied().Min(), 1)
      << "the step is over for rank 1, too";
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12)), Verdict::kLate);
  EXPECT_EQ(aggregator.Add(Make(1, 1, 12)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kCommitted);
}

TEST(GradientAggregatorTest, NobodyIsAddedToAStepThatIsBeingApplied) {
  GradientAggregator aggregator({.num_workers = 2, .drops_late = true});
  aggregator.Add(Make(0, 0, 11));
  aggregator.Close();
  EXPECT_EQ(aggregator.Add(Make(1, 0, 12)), Verdict::kLate);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 11)), Verdict::kHeld);
  aggregator.Commit();
  EXPECT_EQ(aggregator.Add(Make(1, 1, 12)), Verdict::kAdded);
}

TEST(GradientAggregatorTest, WithoutGatheringEveryRankHasItsOwnStep) {
  GradientAggregator aggregator({.num_workers = 2, .gathers = false});
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(aggregator.Add(Make(0, step, 11)), Verdict::kAdded);
    aggregator.Commit();
  }
  EXPECT_EQ(aggregator.applied().steps(0), 3);
  EXPECT_EQ(aggregator.applied().steps(1), 0);
  EXPECT_EQ(aggregator.MissingRanks(), std::vector<int>{1});
  EXPECT_EQ(aggregator.Add(Make(0, 2, 11)), Verdict::kCommitted);
  EXPECT_EQ(aggregator.Add(Make(0, 1, 11)), Verdict::kTooOld);
  EXPECT_EQ(aggregator.Add(Make(1, 1, 11)), Verdict::kTooNew);
  EXPECT_EQ(aggregator.Add(Make(1, 0, 11)), Verdict::kAdded);
}

TEST(GradientAggregatorTest, WithoutGatheringAReplacementMaySendOtherBytes) {
  GradientAggregator aggregator({.num_workers = 1, .gathers = false});
  aggregator.Add(Make(0, 0, 11, /*incarnation=*/1));
  aggregator.Commit();
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/1)),
            Verdict::kConflict);
  EXPECT_EQ(aggregator.Add(Make(0, 0, 99, /*incarnation=*/2)),
            Verdict::kCommitted);
}

TEST(GradientAggregatorTest, ARestoredBlockWantsTheNextStep) {
  GradientAggregator aggregator({.num_workers = 2});
  aggregator.StartAt(7);
  EXPECT_EQ(aggregator.Add(Make(0, 6, 11)), Verdict::kTooOld);
  EXPECT_EQ(aggregator.Add(Make(0, 7, 11)), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(Make(1, 8, 11)), Verdict::kTooNew);
}

}  // namespace
}  // namespace tributary
