// SPDX-License-Identifier: Apache-2.0
// Steps of many ranks whose pushes announce the total of samples, so that the
// shard adds contributions before the step is complete.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/wire/crc32c/crc32c.h"
#include "server/store/rejection.h"
#include "tests/unit/server/store/parameter_shard_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr int kManyRanks = 18;
constexpr int64_t kMatrixSize = 40 * 60, kBiasSize = 60, kAverageSize = 5;
constexpr int64_t kModelSize = kMatrixSize + kBiasSize + kAverageSize;

struct Case {
  std::string name;
  OptimizerOptions optimizer;
  double clip_norm = 0;
  const char* wire = "float32";

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// The contributions of all ranks to one step.
struct Pushed {
  std::vector<uint64_t> samples;
  std::vector<std::string> bytes;
  uint64_t total = 0;

  Contribution Of(uint32_t rank, int64_t step, bool announces) const {
    Contribution c;
    c.rank = rank;
    c.incarnation = 1;
    c.step = step;
    c.samples = samples[rank];
    c.total_samples = announces ? total : 0;
    if (c.samples > 0) {
      c.payload = Payload::Copy(bytes[rank].data(), bytes[rank].size());
    }
    c.crc32c = c.payload.ScanFloats().crc32c;
    return c;
  }
};

class AddedOnArrivalTest : public ParameterShardTest,
                           public ::testing::WithParamInterface<Case> {
 protected:
  // The weights after each step. With `announces` the ranks arrive in any
  // order, else in rank order.
  std::vector<std::vector<float>> Train(bool announces, int64_t group,
                                        uint32_t seed) {
    const Case& c = GetParam();
    parameters_ = {
        {"w", {40, 60}},
        {"b", {kBiasSize}},
        {.name = "m", .shape = {kAverageSize}, .running_momentum = 0.1}};
    encoding_ = FindEncoding(c.wire);
    ParameterShard::Options options;
    options.num_workers = kManyRanks;
    options.training.optimizer = c.optimizer;
    options.training.clip_norm = c.clip_norm;
    options.training.policy = std::make_unique<BulkSynchronous>();
    options.training.summation.group = group;
    Create(std::move(options));
    const std::vector<float> start(kModelSize, 0.5f);
    TRIBUTARY_EXPECT_OK(shard_->Initialize(0, Floats(start).ScanFloats().crc32c,
                                           Floats(start)));
    std::mt19937 order_of(seed);
    std::vector<std::vector<float>> weights;
    for (int64_t step = 0; step < 4; ++step) {
      weights.push_back(Step(step, MakePushed(step), announces, order_of));
    }
    return weights;
  }

  // The same for every call.
  Pushed MakePushed(int64_t step) const {
    std::mt19937 random(static_cast<uint32_t>(step + 1));
    std::normal_distribution<float> normal(0, 0.01f);
    Pushed pushed;
    for (int rank = 0; rank < kManyRanks; ++rank) {
      pushed.samples.push_back(random() % 5);
      std::string& bytes = pushed.bytes.emplace_back();
      for (const Slice& slice : plan_->blocks(0)[0].slices) {
        std::vector<float> numbers(static_cast<size_t>(slice.size()));
        for (float& x : numbers) x = random() % 11 ? normal(random) : -0.0f;
        std::string part(slice.encoding->Bytes(slice.size()), '\0');
        slice.encoding->Encode(slice.size(), numbers.data(), part.data());
        bytes += part;
      }
    }
    pushed.total = std::accumulate(pushed.samples.begin(), pushed.samples.end(),
                                   uint64_t{0});
    return pushed;
  }

  std::vector<float> Step(int64_t step, const Pushed& pushed, bool announces,
                          std::mt19937& order_of) {
    std::vector<uint32_t> order(kManyRanks);
    std::iota(order.begin(), order.end(), 0u);
    if (announces) {  // each of the first ranks is late by up to six places
      for (size_t i = 0; i + 6 < order.size(); ++i) {
        std::swap(order[i], order[i + order_of() % 6]);
      }
    }
    std::vector<Answer> answers;
    for (size_t i = 0; i < order.size(); ++i) {
      answers.push_back(Push(pushed.Of(order[i], step, announces)));
      if (announces && i + 1 < order.size()) {
        const uint32_t again = order[order_of() % (i + 1)];
        Push(pushed.Of(again, step, announces));
        most_held_ = std::max(most_held_, shard_->held_bytes());
      }
    }
    for (const Answer& answer : answers) {
      EXPECT_TRUE(answer->has_value() && (*answer)->ok());
    }
    EXPECT_EQ(shard_->held_bytes(), 0u);
    const float* const first = (**answers[0])->weights.data();
    return {first, first + kModelSize};
  }

  uint64_t most_held_ = 0;
};

TEST_P(AddedOnArrivalTest, TheBitsAreThoseOfTheSumInOnePass) {
  const auto wanted = Train(/*announces=*/false, StepGradient::kGroup, 0);
  ASSERT_NE(wanted[3], wanted[2]);
  for (const int64_t group : {1, 2, 3}) {
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      const auto got = Train(/*announces=*/true, group, seed);
      for (size_t step = 0; step < wanted.size(); ++step) {
        ASSERT_EQ(std::memcmp(got[step].data(), wanted[step].data(),
                              sizeof(float) * kModelSize),
                  0)
            << "step " << step << ", group " << group << ", seed " << seed;
      }
      EXPECT_EQ(shard_->counters().contributions, 4u * kManyRanks);
      EXPECT_EQ(shard_->counters().duplicates, 4u * (kManyRanks - 1));
    }
  }
  EXPECT_LT(most_held_, sizeof(float) * kModelSize * (kManyRanks - 2))
      << "nothing was added early";
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const OptimizerKind& kind : AllOptimizerKinds()) {
    OptimizerOptions options;
    options.kind = kind.name;
    options.weight_decay = 0.01;
    options.momentum = 0.9;
    cases.push_back({kind.name, options});
    cases.push_back({std::string(kind.name) + "_clipped", options, 0.05});
    cases.push_back(
        {std::string(kind.name) + "_bfloat16", options, 0, "bfloat16"});
    cases.push_back({std::string(kind.name) + "_int8", options, 0, "int8"});
  }
  cases.push_back({"sgd_float16", {}, 0, "float16"});
  cases.push_back({"sgd_top_k", {}, 0, "top_k"});
  cases.push_back({"sgd_one_bit", {}, 0, "one_bit"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, AddedOnArrivalTest,
                         ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// ---- one step of two weights

class AnnouncedTotalTest : public ParameterShardTest {
 protected:
  AnnouncedTotalTest() { CreateAnnounced(3); }

  void CreateAnnounced(int workers) {
    ParameterShard::Options options;
    options.num_workers = workers;
    options.training.policy = std::make_unique<BulkSynchronous>();
    options.training.summation.group = 1;
    Create(std::move(options));
    Initialize();
  }
  static Contribution Announcing(uint32_t rank, float value, uint64_t samples,
                                 uint64_t total) {
    Contribution c = Make(rank, 0, value, samples);
    c.total_samples = total;
    return c;
  }
};

// (1 * 4 + 1 * 8 + 2 * 2) / 4 = 4.
TEST_F(AnnouncedTotalTest, AnotherTotalIsRefusedAndChangesNothing) {
  const Answer first = Push(Announcing(0, 4, 1, 4));
  EXPECT_EQ(shard_->held_bytes(), 16u) << "the sum";
  const Answer wrong = Push(Announcing(1, 8, 1, 5));
  EXPECT_THAT((**wrong).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 1 announced 5 samples of all ranks for step 1, "
                       "wanted 4 as another rank has announced"));
  EXPECT_EQ(RejectionOf((**wrong).status()), Rejection::kSamples);
  EXPECT_EQ(shard_->MissingRanks(), (std::vector<int>{1, 2}));
  Push(Announcing(1, 8, 1, 4));
  Push(Announcing(2, 2, 2, 4));
  EXPECT_EQ(First(first), -4);
}

TEST_F(AnnouncedTotalTest, SamplesThatDoNotAddUpAreNeverApplied) {
  const Answer first = Push(Announcing(0, 4, 1, 4));
  EXPECT_THAT((**Push(Announcing(1, 8, 4, 4))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 1 sent 4 samples for step 1, for which 1 have "
                       "come from other ranks and 4 are announced"));
  Push(Announcing(1, 8, 1, 4));
  EXPECT_THAT((**Push(Announcing(2, 2, 1, 0))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted numbers that add up"))
      << "announces nothing, but the others have";
  EXPECT_FALSE(first->has_value());
  Push(Announcing(2, 2, 2, 4));
  EXPECT_EQ(First(first), -4);
}

TEST_F(AnnouncedTotalTest, ATotalThatNoDoubleHoldsIsRefused) {
  EXPECT_THAT((**Push(Announcing(0, 4, 1, (uint64_t{1} << 53) + 1))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted at most 9007199254740992"));
  EXPECT_FALSE(Push(Announcing(0, 4, 1, uint64_t{1} << 53))->has_value());
}

// New processes of ranks 0 and 2 compute other bits. Rank 0's earlier bits are
// in the sum and stay; rank 2's are dropped and replaced. (4 + 8 + 6) / 3 = 6.
TEST_F(AnnouncedTotalTest, ARecomputedGradientReplacesOnlyWhatIsNotAdded) {
  Push(Announcing(0, 4, 1, 3));
  Push(Announcing(2, 2, 1, 3));
  EXPECT_EQ(shard_->held_bytes(), 32u);
  EXPECT_EQ(shard_->ReadClock(0, 2, /*recomputes=*/true)->steps, 1);
  EXPECT_EQ(shard_->ReadClock(2, 2, /*recomputes=*/true)->steps, 0);
  EXPECT_EQ(shard_->held_bytes(), 16u);
  Contribution other = Announcing(0, 5, 1, 3);
  other.incarnation = 2;
  EXPECT_FALSE(Push(other)->has_value());
  EXPECT_EQ(shard_->counters().duplicates, 1u);
  EXPECT_EQ(shard_->counters().conflicts, 0u);
  other = Announcing(2, 6, 1, 3);
  other.incarnation = 2;
  Push(other);
  EXPECT_EQ(First(Push(Announcing(1, 8, 1, 3))), -6);
}

// The sum of a step that a restored shard had begun does not stay.
TEST_F(AnnouncedTotalTest, ARestoredShardBeginsWithoutASum) {
  Push(Announcing(0, 100, 1, 3));
  EXPECT_GT(shard_->held_bytes(), 0u);
  TRIBUTARY_EXPECT_OK(shard_->Restore(
      0, /*skipped_steps=*/0,
      [](const Block&, float* weights, const std::vector<float*>&) {
        std::fill_n(weights, 4, 0.0f);
        return absl::OkStatus();
      }));
  EXPECT_EQ(shard_->held_bytes(), 0u);
  const Answer first = Push(Announcing(0, 4, 1, 4));
  Push(Announcing(1, 8, 1, 4));
  Push(Announcing(2, 2, 2, 4));
  EXPECT_EQ(First(first), -4);
}

// The NaN is in the sum when the last contribution comes.
TEST_F(AnnouncedTotalTest, AStepThatIsSkippedChangesNothing) {
  ParameterShard::Options options;
  options.num_workers = 3;
  options.training.policy = std::make_unique<BulkSynchronous>();
  options.training.nonfinite = NonFiniteAction::kSkip;
  options.training.summation.group = 1;
  Create(std::move(options));
  Initialize();
  const Answer first = Push(Announcing(0, NAN, 1, 3));
  Push(Announcing(1, 8, 1, 3));
  EXPECT_EQ(shard_->held_bytes(), 16u);
  Push(Announcing(2, 2, 1, 3));
  EXPECT_EQ(First(first), 0);
  EXPECT_EQ(shard_->counters().skipped_blocks, 1u);
  EXPECT_EQ(shard_->held_bytes(), 0u);
}

}  // namespace
}  // namespace tributary
