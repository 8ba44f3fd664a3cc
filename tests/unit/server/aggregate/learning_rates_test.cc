// SPDX-License-Identifier: Apache-2.0
// The learning rates that come with contributions.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/aggregate/gradient_aggregator.h"

namespace tributary {
namespace {

using Rates = std::vector<double>;
using Verdict = GradientAggregator::Verdict;

Contribution With(uint32_t rank, int64_t step, Rates rates,
                  uint64_t incarnation = 1) {
  Contribution c;
  c.rank = rank;
  c.step = step;
  c.crc32c = rank + 1;
  c.incarnation = incarnation;
  c.samples = 8;
  c.learning_rates = std::move(rates);
  return c;
}

TEST(LearningRatesTest, TheRanksOfAStepBringTheSameBits) {
  GradientAggregator aggregator({.num_workers = 3});
  EXPECT_EQ(aggregator.learning_rates(), Rates());
  EXPECT_EQ(aggregator.Add(With(1, 0, {0.1, 0})), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1, -0.0})), Verdict::kWrongRates);
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1})), Verdict::kWrongRates);
  EXPECT_EQ(aggregator.Add(With(0, 0, {})), Verdict::kWrongRates);
  EXPECT_EQ(aggregator.RatesOrigin()->rank, 1u);
  EXPECT_EQ(aggregator.MissingRanks(), (std::vector<int>{0, 2}));
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1, 0})), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(With(2, 0, {0.1, 0})), Verdict::kAdded);
  EXPECT_EQ(aggregator.learning_rates(), (Rates{0.1, 0}));
}

TEST(LearningRatesTest, RatesBesideAContributionWithoutAreRefused) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(With(0, 0, {})), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(With(1, 0, {0.1})), Verdict::kWrongRates);
  EXPECT_EQ(aggregator.Add(With(1, 0, {})), Verdict::kAdded);
}

TEST(LearningRatesTest, EveryStepHasItsOwn) {
  GradientAggregator aggregator({.num_workers = 1});
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1})), Verdict::kAdded);
  aggregator.Commit();
  EXPECT_EQ(aggregator.learning_rates(), Rates());
  EXPECT_EQ(aggregator.Add(With(0, 1, {0.2})), Verdict::kAdded);
  EXPECT_EQ(aggregator.learning_rates(), Rates{0.2});
}

TEST(LearningRatesTest, OtherRatesThanBeforeAreAConflict) {
  GradientAggregator aggregator({.num_workers = 2});
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1})), Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1})), Verdict::kHeld);
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.2})), Verdict::kConflict);
  EXPECT_EQ(aggregator.Add(With(1, 0, {0.1})), Verdict::kAdded);
  aggregator.Commit();
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1})), Verdict::kCommitted);
  EXPECT_EQ(aggregator.Add(With(0, 0, {})), Verdict::kConflict);
}

TEST(LearningRatesTest, ALateOrFencedContributionSetsNone) {
  GradientAggregator aggregator({.num_workers = 2, .drops_late = true});
  EXPECT_EQ(aggregator.Add(With(0, 0, {0.1}, /*incarnation=*/2)),
            Verdict::kAdded);
  EXPECT_EQ(aggregator.Add(With(1, 0, {0.5})), Verdict::kWrongRates);
  aggregator.Commit();
  EXPECT_EQ(aggregator.Add(With(1, 0, {0.5})), Verdict::kLate);
  EXPECT_EQ(aggregator.Add(With(0, 1, {0.5}, /*incarnation=*/1)),
            Verdict::kFenced);
  EXPECT_EQ(aggregator.RatesOrigin(), nullptr);
  EXPECT_EQ(aggregator.Add(With(1, 1, {0.2})), Verdict::kAdded);
  EXPECT_EQ(aggregator.learning_rates(), Rates{0.2});
}

// A rank that holds nothing of the block counts as received.
TEST(LearningRatesTest, ARankThatIsNoMemberHasNone) {
  GradientAggregator aggregator({.num_workers = 2, .members = {false, true}});
  EXPECT_EQ(aggregator.RatesOrigin(), nullptr);
  EXPECT_EQ(aggregator.Add(With(1, 0, {0.1})), Verdict::kAdded);
  EXPECT_EQ(aggregator.learning_rates(), Rates{0.1});
}

TEST(LearningRatesTest, SeparateContributionsBringTheirOwn) {
  GradientAggregator aggregator({.num_workers = 2, .gathers = false});
  for (uint32_t rank : {0, 1}) {
    const Rates rates = {0.1 * (rank + 1)};
    EXPECT_EQ(aggregator.Add(With(rank, 0, rates)), Verdict::kAdded);
    EXPECT_EQ(aggregator.learning_rates(), rates);
    aggregator.Commit();
  }
}

}  // namespace
}  // namespace tributary
