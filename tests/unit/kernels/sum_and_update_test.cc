// SPDX-License-Identifier: Apache-2.0
// The pass of a server, in each of its compilations, against the two operations
// that it joins.
#include "kernels/sum_and_update.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/crc32c/crc32c_chunks.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kChunk = ChunkFold::kBytes / sizeof(float);
constexpr uint32_t kStart = 0x12345678;  // of a checksum

Floats Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats x(static_cast<size_t>(n));
  for (float& value : x) value = random() % 17 == 0 ? 0.0f : normal(random);
  return x;
}

// Every rule that updates weights directly.
std::vector<OptimizerOptions> AllRules() {
  OptimizerOptions base;
  base.weight_decay = 0.01;
  base.initial_accumulator = 0.1;
  base.l1 = 0.05;
  base.l2 = 0.1;
  std::vector<OptimizerOptions> all;
  for (const OptimizerKind& kind : AllOptimizerKinds()) {
    if (kind.makes_direction || kind.factored) continue;
    OptimizerOptions options = base;
    options.kind = kind.name;
    all.push_back(options);
    options.amsgrad = true;
    all.push_back(options);
    options.momentum = 0.9;
    all.push_back(options);
    options.nesterov = options.centered = true;
    all.push_back(options);
    options.momentum = 0;
    if (options.kind != "sgd") all.push_back(options);
  }
  return all;
}

// The arrays of a call.
struct Model {
  Model(const Optimizer& optimizer, int64_t n) : weights(Random(n, 1)) {
    states.resize(optimizer.state_names().size(), Floats(weights.size()));
    optimizer.InitializeState(n, weights.data(), pointers().data());
  }
  std::vector<float*> pointers() {
    std::vector<float*> all;
    for (Floats& state : states) all.push_back(state.data());
    all.resize(kMaxOptimizerStates);
    return all;
  }
  bool operator==(const Model& other) const {
    return Same(weights, other.weights) &&
           std::equal(states.begin(), states.end(), other.states.begin(), Same);
  }
  static bool Same(const Floats& a, const Floats& b) {
    return a.empty() ||
           std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  Floats weights;
  std::vector<Floats> states;
};

// Contributions at any byte address.
struct Parts {
  Parts(int count, int64_t n) : weights(Random(count, 99)) {
    for (int r = 0; r < count; ++r) {
      const Floats part = Random(n, 100 + static_cast<uint32_t>(r));
      const size_t shift = static_cast<size_t>(r * 5 % 64);
      std::string& bytes = memory.emplace_back(shift, '?');
      bytes.append(reinterpret_cast<const char*>(part.data()),
                   part.size() * sizeof(float));
      shifts.push_back(shift);
    }
    for (int r = 0; r < count; ++r) {
      pointers.push_back(
          reinterpret_cast<const float*>(memory[r].data() + shifts[r]));
    }
  }

  Floats weights;
  std::vector<std::string> memory;
  std::vector<size_t> shifts;
  std::vector<const float*> pointers;
};

// Updates *model by the two operations, as the result that is expected.
void Expect(const OptimizerStep& step, const Parts& parts, Model* model) {
  const auto ops = CreateCpuOps();
  const auto n = static_cast<int64_t>(model->weights.size());
  const auto count = static_cast<int>(parts.pointers.size());
  Floats mean(model->weights.size());
  if (count > 0) {
    ops->WeightedSum(n, count, parts.pointers.data(), parts.weights.data(),
                     mean.data());
  }
  ops->OptimizerUpdate(step, n, mean.data(), model->weights.data(),
                       model->weights.data(), model->pointers().data());
}

// Runs a version; in place or not. Checks what it says about the checksum.
void RunVersion(const SumAndUpdateVersion& version, const OptimizerStep& step,
                const Parts& parts, bool in_place, Model* model) {
  const auto n = static_cast<int64_t>(model->weights.size());
  Floats other(model->weights.size());
  float* const out = in_place ? model->weights.data() : other.data();
  ChunkFold fold = BeginCrc32cChunks(kStart);
  const std::vector<float*> state = model->pointers();
  const int64_t folded =
      version.run(step, {.n = n,
                         .count = static_cast<int>(parts.pointers.size()),
                         .parts = parts.pointers.data(),
                         .weights = parts.weights.data(),
                         .weight_in = model->weights.data(),
                         .weight_out = out,
                         .state = state.data(),
                         .fold = &fold});
  if (!in_place) model->weights = other;
  EXPECT_EQ(folded,
            version.name == std::string("portable") ? 0 : n / kChunk * kChunk);
  EXPECT_EQ(FinishCrc32cChunks(fold),
            ExtendCrc32c(kStart, model->weights.data(),
                         static_cast<size_t>(folded) * sizeof(float)))
      << version.name << ", " << n;
}

class SumAndUpdateTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(SumAndUpdateTest, EveryVersionGivesTheBitsOfTheTwoOperations) {
  const int64_t n = GetParam();
  for (const int count : {0, 1, 2, 3, 4, 5, 8, 11}) {
    const Parts parts(count, n);
    for (const OptimizerOptions& options : AllRules()) {
      const Optimizer optimizer(options);
      Model expected(optimizer, n);
      std::vector<Model> got;
      const auto versions = SupportedSumAndUpdateVersions();
      got.resize(2 * versions.size(), expected);
      for (int64_t step = 1; step <= 3; ++step) {
        const OptimizerStep p =
            optimizer.Prepare(step, 0.01, step == 2 ? 0.3 : 1);
        Expect(p, parts, &expected);
        for (size_t i = 0; i < got.size(); ++i) {
          const auto& version = versions[i / 2];
          RunVersion(version, p, parts, i % 2 == 0, &got[i]);
          ASSERT_EQ(got[i], expected)
              << version.name << ", " << options.kind << ", " << n
              << " weights, " << count << " parts, step " << step;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, SumAndUpdateTest,
                         ::testing::Values(0, 1, 7, 63, 64, 65, 127, 128, 200,
                                           1000),
                         [](const auto& info) {
                           return std::to_string(info.param);
                         });

// 1e8 and -1e8 swallow the 1 unless they meet first.
TEST(SumAndUpdateOrderTest, EveryVersionAddsInTheOrderOfTheParts) {
  const Floats large(kChunk, 1e8f), minus(kChunk, -1e8f), one(kChunk, 1);
  const Floats weights(8, 1);
  OptimizerOptions sgd;
  const OptimizerStep step = Optimizer(sgd).Prepare(1, 1.0, 1);
  const auto after = [&](const SumAndUpdateVersion& version,
                         const std::vector<const float*>& parts) {
    Floats weight(kChunk);
    ChunkFold fold = BeginCrc32cChunks(0);
    float* const no_state[kMaxOptimizerStates] = {};
    version.run(step, {.n = kChunk,
                       .count = static_cast<int>(parts.size()),
                       .parts = parts.data(),
                       .weights = weights.data(),
                       .weight_in = weight.data(),
                       .weight_out = weight.data(),
                       .state = no_state,
                       .fold = &fold});
    return weight[kChunk - 1];
  };
  const float *a = large.data(), *b = minus.data(), *c = one.data();
  for (const auto& version : SupportedSumAndUpdateVersions()) {
    EXPECT_EQ(after(version, {a, b, c}), -1) << version.name;
    EXPECT_EQ(after(version, {a, c, b}), 0) << version.name;
    EXPECT_EQ(after(version, {a, b, c, c, c}), -3) << version.name;
    EXPECT_EQ(after(version, {a, c, c, c, b}), 0) << version.name;
    EXPECT_EQ(after(version, {c, c, c, c, a, c, b}), 0) << version.name;
  }
}

}  // namespace
}  // namespace tributary
