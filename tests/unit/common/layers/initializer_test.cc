// SPDX-License-Identifier: Apache-2.0
#include "common/layers/initializer.h"

#include <algorithm>
#include <cmath>

#include "common/layers/model_parameters.h"
#include "tests/unit/worker/train/model/model_fixture.h"

namespace tributary::testing {
namespace {

constexpr char kLayers[] =
    "sequential { linear { in: 100 out: 400 } }"
    "sequential { layernorm { features: 400 } }"
    "sequential { linear { in: 400 out: 7 } }";

Floats Initial(int parameter, uint64_t seed) {
  CpuModel model(kLayers, {100}, 1);
  Floats out(static_cast<size_t>(model.Size(parameter)));
  InitialWeights(model->parameters(), FromText<v1::ModelSpec>(kLayers), seed,
                 parameter, absl::MakeSpan(out));
  return out;
}

// U(-b, b) has mean 0 and variance b^2 / 3.
void ExpectUniform(const Floats& x, double bound) {
  double sum = 0, squares = 0;
  for (float v : x) {
    EXPECT_LE(std::abs(v), bound);
    sum += v;
    squares += double{v} * v;
  }
  const double n = static_cast<double>(x.size());
  const double deviation = bound / std::sqrt(3.0);
  EXPECT_NEAR(sum / n, 0, 5 * deviation / std::sqrt(n));
  // The square's own deviation is bound^2 sqrt(4 / 45).
  EXPECT_NEAR(squares / n, deviation * deviation,
              5 * bound * bound * std::sqrt(4.0 / 45) / std::sqrt(n));
}

TEST(InitializerTest, LinearIsUniformInOneOverTheRootOfItsInputs) {
  ExpectUniform(Initial(0, 1), 0.1);   // 0.weight, in = 100
  ExpectUniform(Initial(1, 1), 0.1);   // 0.bias
  ExpectUniform(Initial(4, 1), 0.05);  // 2.weight, in = 400
  ExpectUniform(Initial(5, 1), 0.05);  // 2.bias
}

TEST(InitializerTest, LayerNormStartsAsTheIdentity) {
  EXPECT_EQ(Initial(2, 1), Floats(400, 1.0f));
  EXPECT_EQ(Initial(3, 1), Floats(400, 0.0f));
}

TEST(InitializerTest, RmsNormStartsWithTheWeightOne) {
  const v1::ModelSpec spec =
      FromText<v1::ModelSpec>("sequential { rms_norm { features: 3 } }");
  const ParameterSpecs parameters = ModelParameters(spec);
  ASSERT_EQ(parameters, (ParameterSpecs{{"0.weight", {3}}}));
  Floats out(3, 9.0f);
  InitialWeights(parameters, spec, 1, 0, absl::MakeSpan(out));
  EXPECT_EQ(out, Floats(3, 1.0f));
}

TEST(InitializerTest, GroupNormStartsAsTheIdentityOrWithoutParameters) {
  v1::ModelSpec spec = FromText<v1::ModelSpec>(
      "sequential { group_norm { groups: 2 features: 4 } }");
  const ParameterSpecs parameters = ModelParameters(spec);
  ASSERT_EQ(parameters, (ParameterSpecs{{"0.weight", {4}}, {"0.bias", {4}}}));
  for (int p : {0, 1}) {
    Floats out(4, 9.0f);
    InitialWeights(parameters, spec, 1, p, absl::MakeSpan(out));
    EXPECT_EQ(out, Floats(4, p == 0 ? 1.0f : 0.0f));
  }
  spec.mutable_sequential(0)->mutable_group_norm()->set_affine(false);
  EXPECT_TRUE(ModelParameters(spec).empty());
}

TEST(InitializerTest, BatchNormStartsAsTheIdentityOfUnitVariance) {
  const v1::ModelSpec spec =
      FromText<v1::ModelSpec>("sequential { batch_norm { features: 3 } }");
  const ParameterSpecs parameters = ModelParameters(spec);
  ASSERT_EQ(parameters.size(), 4u);  // weight, bias, running mean and variance
  const float expected[] = {1, 0, 0, 1};
  for (int p = 0; p < 4; ++p) {
    Floats out(3, 9.0f);
    InitialWeights(parameters, spec, 1, p, absl::MakeSpan(out));
    EXPECT_EQ(out, Floats(3, expected[p])) << parameters[p].name;
  }
}

TEST(InitializerTest, SeedsAndParametersDrawDifferently) {
  const Floats first = Initial(0, 1);
  EXPECT_EQ(Initial(0, 1), first);
  EXPECT_NE(Initial(0, 2), first);
  const Floats weight = Initial(4, 1), bias = Initial(5, 1);
  EXPECT_FALSE(std::equal(bias.begin(), bias.end(), weight.begin()));
}

TEST(InitializerTest, ElementsAreDistinct) {
  Floats x = Initial(0, 1);  // 40,000 of 2^24 values: about 48 pairs collide
  std::sort(x.begin(), x.end());
  const auto distinct = std::unique(x.begin(), x.end()) - x.begin();
  EXPECT_GT(distinct, 39'850);
}

}  // namespace
}  // namespace tributary::testing
