// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

// The identity, then dropout: what comes out shows the mask.
constexpr int64_t kWidth = 50;
const std::string kDropoutLayers =
    "sequential { linear { in: 50 out: 50 bias: false } }"
    "sequential { dropout { p: 0.25 } }";

CpuModel MakeIdentity(uint64_t seed) {
  CpuModel model(kDropoutLayers, {kWidth}, 8, seed);
  Floats identity(kWidth * kWidth, 0.0f);
  for (int64_t i = 0; i < kWidth; ++i) identity[i * kWidth + i] = 1;
  model.SetWeight(0, identity);
  return model;
}

const Floats kOnes(8 * kWidth, 1.0f);

TEST(DropoutTest, ZeroesAShareOfPAndScalesTheOthers) {
  CpuModel model = MakeIdentity(1);
  const Floats y = model.Forward(kOnes, 8, {.training = true});
  int zeros = 0;
  for (float value : y) {
    zeros += value == 0;
    EXPECT_TRUE(value == 0 || value == 1.0f / 0.75f) << value;
  }
  // 400 draws: 100 expected, deviation 8.7.
  EXPECT_NEAR(zeros, 100, 5 * 8.7);
}

TEST(DropoutTest, ChangesNothingInEvaluation) {
  CpuModel model = MakeIdentity(1);
  EXPECT_EQ(model.Forward(kOnes, 8, {.training = false}), kOnes);
}

TEST(DropoutTest, AReplayDrawsTheSameMask) {
  CpuModel first = MakeIdentity(7), second = MakeIdentity(7);
  const ForwardContext context = {.training = true, .step = 5};
  const Floats expected = first.Forward(kOnes, 8, context);
  first.Forward(kOnes, 8, {.training = true, .step = 6});
  EXPECT_EQ(first.Forward(kOnes, 8, context), expected);
  EXPECT_EQ(second.Forward(kOnes, 8, context), expected);
}

TEST(DropoutTest, SeedsStepsAndLayersDrawDifferently) {
  CpuModel model = MakeIdentity(7), other = MakeIdentity(8);
  const ForwardContext context = {.training = true, .step = 5};
  const Floats expected = model.Forward(kOnes, 8, context);
  EXPECT_NE(other.Forward(kOnes, 8, context), expected);
  EXPECT_NE(model.Forward(kOnes, 8, {.training = true, .step = 6}), expected);

  CpuModel later("sequential { flatten {} }" + kDropoutLayers, {kWidth}, 8, 7);
  later.SetWeight(0, Floats(model->weight(0), model->weight(0) + 2500));
  EXPECT_NE(later.Forward(kOnes, 8, context), expected);
}

TEST(DropoutTest, AnyNumberOfWorkersDropsTheSameElements) {
  CpuModel model = MakeIdentity(7);
  const Floats whole =
      model.Forward(kOnes, 8, {.training = true, .step = 2, .first_row = 16});
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Floats part = model.Forward(
        kOnes, 4,
        {.training = true, .step = 2, .first_row = 16 + rank, .row_stride = 2});
    for (int64_t row = 0; row < 4; ++row) {
      const auto begin = whole.begin() + (rank + 2 * row) * kWidth;
      EXPECT_TRUE(
          std::equal(begin, begin + kWidth, part.begin() + row * kWidth))
          << "rank " << rank << " row " << row;
    }
  }
}

}  // namespace
}  // namespace tributary::testing
