// SPDX-License-Identifier: Apache-2.0
// Contributions that are added when they arrive, against those that are kept
// until the step is complete.
#include "server/aggregate/step_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/sample_weights.h"
#include "common/encoding/encoding.h"
#include "common/wire/crc32c/crc32c.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

using Floats = std::vector<float>;
using Verdict = GradientAggregator::Verdict;

constexpr int64_t kGradientSize = ContributionRuns::kLongest + 700;

Floats Numbers(std::mt19937& random) {
  constexpr float kSpecial[] = {0.0f, -0.0f, 1e-42f, 3e38f, -3e38f};
  std::normal_distribution<float> normal;
  Floats numbers(kGradientSize);
  for (float& x : numbers) {
    x = random() % 9 == 0 ? kSpecial[random() % 5] : normal(random);
  }
  return numbers;
}

// Bytes in pieces, which begin and end anywhere.
Payload InPieces(const std::string& bytes, std::mt19937& random) {
  struct Memory {
    std::vector<size_t> shifts;
    std::vector<std::string> strings;
  };
  auto memory = std::make_shared<Memory>();
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(bytes.size() - at, 1 + random() % 9000);
    memory->shifts.push_back(random() % 4);
    memory->strings.push_back(std::string(memory->shifts.back(), '?') +
                              bytes.substr(at, n));
    at += n;
  }
  std::vector<Payload::Piece> pieces;
  for (size_t i = 0; i < memory->strings.size(); ++i) {
    const std::string& s = memory->strings[i];
    const size_t shift = memory->shifts[i];
    pieces.emplace_back(s.data() + shift, s.size() - shift);
  }
  return Payload(std::move(pieces), memory);
}

// A block's step of some ranks.
class StepGradientTest : public ::testing::Test {
 protected:
  void Create(int ranks, const char* wire, int64_t group = 1) {
    block_ = {.size = kGradientSize, .slices = {{.end = kGradientSize}}};
    block_.slices[0].encoding = FindEncoding(wire);
    aggregator_ = std::make_unique<GradientAggregator>(
        GradientAggregator::Options{.num_workers = ranks});
    gradient_ = std::make_unique<StepGradient>(block_, aggregator_.get(), group,
                                               StepGradient::Replaced());
  }

  Contribution Make(uint32_t rank, uint64_t samples, uint64_t total,
                    const Floats& numbers) {
    Contribution c;
    c.rank = rank;
    c.incarnation = 1;
    c.samples = samples;
    c.total_samples = total;
    if (samples == 0) return c;
    const Encoding& encoding = *block_.slices[0].encoding;
    std::string bytes(static_cast<size_t>(encoding.Bytes(kGradientSize)), '\0');
    encoding.Encode(kGradientSize, numbers.data(), bytes.data());
    c.payload = InPieces(bytes, random_);
    c.crc32c = Crc32c(bytes.data(), bytes.size());
    return c;
  }
  // A contribution of ones with one sample.
  Contribution One(uint32_t rank) {
    return Make(rank, 1, aggregator_->contributions().size(),
                Floats(kGradientSize, 1.0f));
  }

  // Adds a contribution as ParameterShard does.
  Verdict Push(Contribution c) {
    const Verdict verdict = aggregator_->Add(std::move(c));
    if (verdict == Verdict::kAdded && !aggregator_->MissingRanks().empty() &&
        gradient_->HasGroup()) {
      gradient_->AddArrived(*ops_);
    }
    return verdict;
  }
  uint64_t PayloadBytes() const { return aggregator_->held_bytes(); }

  const std::unique_ptr<Ops> ops_ = CreateCpuOps();
  std::mt19937 random_{20261123};
  Block block_;
  std::unique_ptr<GradientAggregator> aggregator_;
  std::unique_ptr<StepGradient> gradient_;
};

// The sum of the decoded contributions by the definition: w_0 g_0, then
// + w_1 g_1 and so on, each rounded to float32.
Floats MeanOf(const Block& block, const std::vector<uint64_t>& samples,
              const std::vector<Floats>& numbers) {
  const std::vector<float> weights = SampleWeights(samples);
  const Encoding& encoding = *block.slices[0].encoding;
  std::string bytes(static_cast<size_t>(encoding.Bytes(kGradientSize)), '\0');
  Floats mean, decoded(kGradientSize);
  for (size_t rank = 0; rank < samples.size(); ++rank) {
    if (samples[rank] == 0) continue;
    encoding.Encode(kGradientSize, numbers[rank].data(), bytes.data());
    encoding.Decode(kGradientSize, bytes.data(), decoded.data());
    const bool first = mean.empty();
    mean.resize(kGradientSize);
    for (int64_t i = 0; i < kGradientSize; ++i) {
      const volatile float product = weights[rank] * decoded[i];
      mean[i] = first ? float{product} : mean[i] + product;
    }
  }
  return mean.empty() ? Floats(kGradientSize, 0.0f) : mean;
}

TEST_F(StepGradientTest, EveryOrderOfArrivalGivesTheBitsOfTheSumInRankOrder) {
  int added_early = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int ranks = 2 + static_cast<int>(random_() % 21);
    const char* const wires[] = {"float32", "bfloat16", "float16", "int8",
                                 "one_bit"};
    const char* const wire = wires[trial % 5];
    Create(ranks, wire, 1 + static_cast<int64_t>(random_() % 3));
    std::vector<uint64_t> samples;
    std::vector<Floats> numbers;
    for (int rank = 0; rank < ranks; ++rank) {
      samples.push_back(random_() % 4 * (random_() % 100));
      numbers.push_back(Numbers(random_));
    }
    const auto total =
        std::accumulate(samples.begin(), samples.end(), uint64_t{0});
    std::vector<uint32_t> order(static_cast<size_t>(ranks));
    std::iota(order.begin(), order.end(), 0u);
    // From nearly in order to any order.
    const size_t reach = 1 + random_() % order.size();
    for (size_t i = 0; i < order.size(); ++i) {
      std::swap(order[i],
                order[std::min(i + random_() % reach, order.size() - 1)]);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      const uint32_t rank = order[i];
      ASSERT_EQ(Push(Make(rank, samples[rank], total, numbers[rank])),
                Verdict::kAdded);
      const uint32_t again = order[random_() % (i + 1)];
      ASSERT_EQ(Push(Make(again, samples[again], total, numbers[again])),
                Verdict::kHeld);
      Contribution other = Make(again, samples[again], total, numbers[again]);
      other.crc32c ^= 1;
      ASSERT_EQ(Push(std::move(other)), Verdict::kConflict);
    }
    if (aggregator_->added() > 0) ++added_early;
    const Floats wanted = MeanOf(block_, samples, numbers);
    // The fused pass reads the runs, the two-phase steps the average.
    ContributionRuns runs = gradient_->Runs();
    for (int64_t begin = 0, n = 0; runs.count() > 0 && begin < kGradientSize;
         begin += n) {
      n = runs.Next(kGradientSize - begin);
      Floats part(static_cast<size_t>(n));
      ops_->WeightedSum(n, runs.count(), runs.parts(), runs.weights(),
                        part.data());
      ASSERT_EQ(std::memcmp(part.data(), wanted.data() + begin,
                            part.size() * sizeof(float)),
                0)
          << "trial " << trial;
    }
    gradient_->Average(*ops_);
    ASSERT_EQ(std::memcmp(gradient_->data(), wanted.data(),
                          wanted.size() * sizeof(float)),
              0)
        << "trial " << trial << ", " << wire << ", " << ranks << " ranks";
    EXPECT_EQ(PayloadBytes(), 0u);
    aggregator_->Commit();
    EXPECT_EQ(gradient_->held_bytes(), 0u);
  }
  EXPECT_GT(added_early, 60) << "most trials should test something";
}

// -0 + -0 is -0, but 0 + -0 is 0.
TEST_F(StepGradientTest, ASumOfNegativeZerosStaysNegative) {
  Create(4, "float32");
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Push(Make(rank, 1, 4, Floats(kGradientSize, -0.0f)));
  }
  EXPECT_EQ(aggregator_->added(), 3);
  gradient_->Average(*ops_);
  EXPECT_TRUE(std::signbit(gradient_->data()[0]));
}

TEST_F(StepGradientTest, InOrderAtMostAGroupOfPayloadsIsHeld) {
  constexpr uint64_t kPayload = kGradientSize * sizeof(float);
  Create(64, "float32", StepGradient::kGroup);
  for (uint32_t rank = 0; rank < 64; ++rank) {
    Push(One(rank));
    // 1, ..., 7, then a sum and 0, ..., 7 and so on, and 8 at the end.
    const uint64_t payloads = rank == 63 ? 8 : (rank + 1) % 8;
    EXPECT_EQ(PayloadBytes(), payloads * kPayload) << rank;
    EXPECT_EQ(gradient_->held_bytes(),
              (payloads + (rank >= 7 ? 1 : 0)) * kPayload)
        << rank;
  }
}

// Rank 0 comes last.
TEST_F(StepGradientTest, WhatFollowsAMissingRankIsHeld) {
  constexpr uint64_t kPayload = kGradientSize * sizeof(float);
  Create(64, "float32", StepGradient::kGroup);
  for (uint32_t rank = 63; rank > 0; --rank) Push(One(rank));
  EXPECT_EQ(PayloadBytes(), 63 * kPayload);
  EXPECT_EQ(aggregator_->added(), 0);
  Push(One(0));
  gradient_->Average(*ops_);
  EXPECT_EQ(gradient_->data()[0], 1.0f);
}

TEST_F(StepGradientTest, AClosedGapAddsAllThatHasArrivedBehindIt) {
  Create(20, "float32", StepGradient::kGroup);
  for (uint32_t rank = 1; rank < 15; ++rank) Push(One(rank));
  EXPECT_EQ(aggregator_->added(), 0);
  Push(One(0));
  EXPECT_EQ(aggregator_->added(), 15);
  EXPECT_EQ(PayloadBytes(), 0u);
}

TEST_F(StepGradientTest, FewRanksAreSummedInOnePass) {
  for (const auto& [ranks, wire, added] :
       {std::tuple(15, "float32", 0), std::tuple(16, "float32", 8),
        // Half of the bytes: a group has 16 contributions.
        std::tuple(31, "bfloat16", 0), std::tuple(32, "bfloat16", 16)}) {
    Create(ranks, wire, StepGradient::kGroup);
    for (int rank = 0; rank + 1 < ranks; ++rank) {
      Push(One(static_cast<uint32_t>(rank)));
    }
    EXPECT_EQ(aggregator_->added(), added) << ranks << " ranks, " << wire;
  }
}

TEST_F(StepGradientTest, WithoutAnAnnouncementNothingIsAddedEarly) {
  Create(4, "float32");
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Contribution c = One(rank);
    c.total_samples = 0;
    Push(std::move(c));
  }
  EXPECT_EQ(aggregator_->added(), 0);
  EXPECT_FALSE(gradient_->HasGroup());
  // The last contribution's announcement is valid for all.
  Create(5, "float32");
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Contribution c = One(rank);
    if (rank < 3) c.total_samples = 0;
    Push(std::move(c));
  }
  EXPECT_EQ(aggregator_->added(), 4);
}

// These take no memory of the server, but must be added when a later one does.
TEST_F(StepGradientTest, ContributionsInSharedMemoryMakeNoGroup) {
  Create(6, "float32", /*group=*/2);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Contribution c = One(rank);
    c.in_shared_memory = rank != 1;
    Push(std::move(c));
  }
  EXPECT_EQ(aggregator_->added(), 0);
  Push(One(4));
  EXPECT_EQ(aggregator_->added(), 5);
}

}  // namespace
}  // namespace tributary
