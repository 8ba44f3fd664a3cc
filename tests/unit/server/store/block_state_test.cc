// SPDX-License-Identifier: Apache-2.0
// The step of a block, against the operations on whole arrays.
#include "server/store/block_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "common/wire/crc32c/crc32c.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

using Floats = std::vector<float>;

constexpr int kRanks = 3;
// A matrix, and a vector without decay, whose update is another.
constexpr int64_t kMatrix = 9000, kVector = 301, kSize = kMatrix + kVector;

Floats Numbers(int64_t n, int seed) {
  Floats numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>((i * 37 + seed * 101) % 1000) / 500 - 1;
  }
  return numbers;
}

class BlockStateTest : public ::testing::Test {
 protected:
  void Create(const char* kind) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    OptimizerOptions options;
    options.kind = kind;
    options.weight_decay = 0.1;
    options.decay_matrices_only = true;
    optimizer_ = std::make_unique<GroupedOptimizer>(options);
    state_ = std::make_unique<BlockState>(
        block_, BlockState::Options{.optimizer = optimizer_.get(),
                                    .policy = &policy_,
                                    .parameters = &parameters_,
                                    .num_workers = kRanks,
                                    .summation = {.group = 1}});
    weights_ = Numbers(kSize, 0);
    states_.assign(optimizer_->state_names().size(), Floats(kSize));
    const std::vector<float*> states = StatesAt(0);
    optimizer_->of_group(0).InitializeState(kSize, weights_.data(),
                                            states.data());
    state_->SetWeights(Bytes(weights_), 0);
    mean_ = Floats(kSize);
  }

  static Payload Bytes(const Floats& floats) {
    return Payload::Copy(floats.data(), floats.size() * sizeof(float));
  }
  std::vector<float*> StatesAt(int64_t offset) {
    std::vector<float*> all;
    for (Floats& state : states_) all.push_back(state.data() + offset);
    all.resize(kMaxOptimizerStates);
    return all;
  }

  // Adds a contribution of every rank, and puts the expected mean into mean_.
  // With `early`, each contribution except the last is added at once.
  void Contribute(int64_t step,
                  bool early = false) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::vector<Floats> gradients;
    std::vector<const float*> parts;
    for (int rank = 0; rank < kRanks; ++rank) {
      gradients.push_back(
          Numbers(kSize, static_cast<int>(10 * step) + rank + 1));
      Contribution c;
      c.rank = static_cast<uint32_t>(rank);
      c.incarnation = 1;
      c.step = step;
      c.samples = 1;
      c.total_samples = early ? kRanks : 0;
      c.payload = Bytes(gradients.back());
      state_->aggregator().Add(std::move(c));
      if (early && rank + 1 < kRanks) state_->gradient().AddArrived(*ops_);
    }
    for (const Floats& gradient : gradients) parts.push_back(gradient.data());
    const Floats share(kRanks, static_cast<float>(1.0 / kRanks));
    ops_->WeightedSum(kSize, kRanks, parts.data(), share.data(), mean_.data());
  }

  // Applies the step to the expected weights.
  void Update(const OptimizerSteps& prepared) {
    for (const auto& [parameter, begin, n] :
         {std::tuple(0, int64_t{0}, kMatrix),
          std::tuple(1, kMatrix, kVector)}) {
      const std::vector<float*> states = StatesAt(begin);
      ops_->OptimizerUpdate(
          optimizer_->StepFor(parameters_[parameter], prepared), n,
          mean_.data() + begin, weights_.data() + begin,
          weights_.data() + begin, states.data());
    }
  }

  void ExpectWeights(const char* what) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const WeightsSnapshot got = state_->Snapshot();
    EXPECT_EQ(
        std::memcmp(got.weights.data(), weights_.data(), kSize * sizeof(float)),
        0)
        << what;
    EXPECT_EQ(got.crc32c, Crc32c(got.weights.data(), kSize * sizeof(float)))
        << what;
  }

  const std::unique_ptr<Ops> ops_ = CreateCpuOps();
  const BulkSynchronous policy_;
  const ParameterSpecs parameters_ = {{"w", {90, 100}}, {"b", {kVector}}};
  const Block block_ = {
      .size = kSize,
      .slices = {{.parameter = 0, .begin = 0, .end = kMatrix},
                 {.parameter = 1, .end = kVector, .offset = kMatrix}}};
  std::unique_ptr<GroupedOptimizer> optimizer_;
  std::unique_ptr<BlockState> state_;
  Floats weights_, mean_;
  std::vector<Floats> states_;
};

TEST_F(BlockStateTest, OnePassGivesTheBitsOfSeparateOnesAndTheirChecksum)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (const SumAndUpdateVersion& version : SupportedSumAndUpdateVersions()) {
    Create("adam");
    for (int64_t step = 1; step <= 3; ++step) {
      Contribute(step - 1);
      const OptimizerSteps prepared = optimizer_->Prepare(step, {0.1}, 1);
      state_->ApplyFused(prepared, &version);
      Update(prepared);
      ExpectWeights(version.name);
    }
  }
}

TEST_F(BlockStateTest, OnePassAfterAnEarlySumGivesTheSameBits)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (const SumAndUpdateVersion& version : SupportedSumAndUpdateVersions()) {
    Create("adam");
    for (int64_t step = 1; step <= 3; ++step) {
      Contribute(step - 1, /*early=*/true);
      EXPECT_EQ(state_->aggregator().added(), kRanks - 1);
      const OptimizerSteps prepared = optimizer_->Prepare(step, {0.1}, 1);
      state_->ApplyFused(prepared, &version);
      Update(prepared);
      ExpectWeights(version.name);
    }
  }
}

// Where an answer holds the old weights, the new ones go to another buffer.
TEST_F(BlockStateTest, WeightsThatAreBeingSentStayAsTheyAre)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Create("sgd");
  const WeightsSnapshot sent = state_->Snapshot();
  const Floats before = weights_;
  Contribute(0);
  const OptimizerSteps prepared = optimizer_->Prepare(1, {0.1}, 1);
  state_->ApplyFused(prepared);
  Update(prepared);
  ExpectWeights("sgd");
  EXPECT_EQ(Floats(sent.weights.data(), sent.weights.data() + kSize), before);
}

TEST_F(BlockStateTest, AClippedStepHasItsChecksum)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Create("adam");
  Contribute(0);
  state_->Average(*ops_);
  const OptimizerSteps prepared = optimizer_->Prepare(1, {0.1}, 0.25);
  state_->ApplyAveraged(prepared);
  Update(prepared);
  ExpectWeights("adam, clipped");
}

// A weight becomes 0.9 times itself less half of its direction.
TEST_F(BlockStateTest, AStepAlongADirectionHasItsChecksum)
ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Create("lamb");
  Contribute(0);
  state_->Average(*ops_);
  const OptimizerSteps prepared = optimizer_->Prepare(1, {0.1}, 1);
  state_->Direction(*ops_, prepared);
  state_->ApplyDirection(*ops_, {{.rate = 0.5f, .weight_scale = 0.9f},
                                 {.rate = 0.5f, .weight_scale = 0.9f}});
  Floats direction(kSize);
  for (const auto& [parameter, begin, n] :
       {std::tuple(0, int64_t{0}, kMatrix), std::tuple(1, kMatrix, kVector)}) {
    const std::vector<float*> states = StatesAt(begin);
    ops_->OptimizerDirection(
        optimizer_->StepFor(parameters_[parameter], prepared), n,
        mean_.data() + begin, weights_.data() + begin, direction.data() + begin,
        states.data());
  }
  ops_->ApplyDirection(kSize, 0.5f, 0.9f, direction.data(), weights_.data(),
                       weights_.data());
  ExpectWeights("lamb");
}

}  // namespace
}  // namespace tributary
