// SPDX-License-Identifier: Apache-2.0
// Compares models whose layers are cut over ranks with the same models uncut.
#include <gmock/gmock.h>

#include <map>

#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/model/tensor_cases.h"

namespace tributary::testing {
namespace {

class TensorParallelTest : public ::testing::TestWithParam<int> {};

TEST_P(TensorParallelTest, OutputsLossAndGradientsAreThoseOfOneProcess) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    constexpr int64_t kRows = 7;
    CpuModel whole(c.layers, c.shape, kRows);
    TensorRanks ranks({.layers = c.layers,
                       .sample_shape = c.shape,
                       .max_rows = kRows,
                       .ranks = GetParam(),
                       .loss = c.loss});
    const int64_t outputs = whole->output_shape().back();
    const auto loss =
        *Loss::Create(FromText<v1::LossSpec>(c.loss),
                      {.ops = &whole.ops(),
                       .max_rows = kRows,
                       .outputs = outputs,
                       .positions = whole->output_size() / outputs});
    ASSERT_EQ(ranks.num_parameters(), whole.num_parameters());
    EXPECT_EQ(ranks.model().num_tokens(), whole->num_tokens());
    // The second pass has another step's dropout, and adds to the first.
    for (const int64_t step : {3, 4}) {
      const ForwardContext context = {
          .training = true, .step = step, .first_row = 1, .row_stride = 2};
      const int64_t rows = step == 3 ? kRows : kRows - 2;
      const Data data = DataOf(c, rows, whole->output_size(), step);
      const Floats logits = whole.Forward(data.features, rows, context);
      const auto d =
          loss->Differentiate(logits.data(), data.targets(), rows, 1.0 / kRows);
      ASSERT_TRUE(d.ok()) << d.status();
      whole->Backward(*d, step == 4, nullptr);
      const TensorRanks::Step got = ranks.Train(
          data.features, data.targets(), rows, 1.0 / kRows, context, step == 4);
      EXPECT_LT(Error(got.logits, logits), kTolerance);
      EXPECT_NEAR(got.loss, *loss->Sum(), 1e-6 * *loss->Sum());
      for (int p = 0; p < whole.num_parameters(); ++p) {
        EXPECT_EQ(ranks.whole_parameters()[p], whole->parameters()[p]);
        EXPECT_LT(Error(ranks.Gradient(p), whole.Gradient(p)), kTolerance)
            << whole->parameters()[p].name;
      }
    }
  }
}

// A model that is cut into two stages at any place, also between the two layers
// of a pair. The same ranks run both stages, one after the other.
TEST_P(TensorParallelTest, TwoStagesAreTheWholeModel) {
  constexpr int64_t kRows = 5;
  const ForwardContext context = {.training = true, .step = 3};
  for (const Case& c : Cases()) {
    CpuModel whole(c.layers, c.shape, kRows);
    const int64_t outputs = whole->output_shape().back();
    const Data data = DataOf(c, kRows, whole->output_size(), 1);
    const auto loss =
        *Loss::Create(FromText<v1::LossSpec>(c.loss),
                      {.ops = &whole.ops(),
                       .max_rows = kRows,
                       .outputs = outputs,
                       .positions = whole->output_size() / outputs});
    const Floats logits = whole.Forward(data.features, kRows, context);
    const auto d_whole =
        loss->Differentiate(logits.data(), data.targets(), kRows, 1.0 / kRows);
    ASSERT_TRUE(d_whole.ok()) << d_whole.status();
    const double sum = *loss->Sum();
    whole->Backward(*d_whole, false, nullptr);
    std::map<std::string, Floats> expected;
    for (int p = 0; p < whole.num_parameters(); ++p) {
      expected[whole->parameters()[p].name] = whole.Gradient(p);
    }
    const int layers = FromText<v1::ModelSpec>(c.layers).sequential_size();
    for (int cut = 1; cut < layers; ++cut) {
      SCOPED_TRACE(c.name + " before layer " + std::to_string(cut));
      TensorRanks::Setup setup = {.layers = c.layers,
                                  .sample_shape = c.shape,
                                  .max_rows = kRows,
                                  .ranks = GetParam(),
                                  .loss = c.loss};
      setup.end_layer = cut;
      TensorRanks front(setup);
      setup.first_layer = cut;
      setup.end_layer = 0;
      TensorRanks back(setup);
      std::vector<const float*> between(GetParam()), d_between(GetParam());
      front.Run([&](int r, TensorRank& rank) {
        between[r] = rank.model->Forward(data.features.data(), kRows, context);
      });
      back.Run([&](int r, TensorRank& rank) {
        const float* y = rank.model->Forward(between[r], kRows, context);
        const auto d =
            rank.loss->Differentiate(y, data.targets(), kRows, 1.0 / kRows);
        ASSERT_TRUE(d.ok()) << d.status();
        d_between[r] = rank.model->Backward(*d, false, nullptr);
        EXPECT_NEAR(*rank.loss->Sum(), sum, 1e-6 * sum);
      });
      front.Run([&](int r, TensorRank& rank) {
        rank.model->Backward(d_between[r], false, nullptr);
      });
      // A parameter of two stages has its gradient in two parts.
      std::map<std::string, Floats> got;
      for (TensorRanks* stage : {&front, &back}) {
        for (int p = 0; p < stage->num_parameters(); ++p) {
          const Floats part = stage->Gradient(p);
          Floats& sum = got[stage->whole_parameters()[p].name];
          sum.resize(part.size());
          for (size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
        }
      }
      ASSERT_EQ(got.size(), expected.size());
      for (const auto& [name, gradient] : expected) {
        EXPECT_LT(Error(got[name], gradient), kTolerance) << name;
      }
    }
  }
}

TEST_P(TensorParallelTest, TwentyStepsOfSgdEndAtTheSameWeights) {
  constexpr int64_t kRows = 8;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    CpuModel whole(c.layers, c.shape, kRows);
    TensorRanks ranks({.layers = c.layers,
                       .sample_shape = c.shape,
                       .max_rows = kRows,
                       .ranks = GetParam(),
                       .loss = c.loss});
    const int64_t outputs = whole->output_shape().back();
    const auto loss =
        *Loss::Create(FromText<v1::LossSpec>(c.loss),
                      {.ops = &whole.ops(),
                       .max_rows = kRows,
                       .outputs = outputs,
                       .positions = whole->output_size() / outputs});
    for (int p = 0; p < whole.num_parameters(); ++p) {
      Floats initial = Noise(whole.Size(p), static_cast<uint64_t>(p) + 100);
      for (float& w : initial) w *= 0.2f;
      whole.SetWeight(p, initial);
      ranks.SetWeight(p, initial);
    }
    const auto descend = [&](Ops& ops, Model& model) {
      for (size_t i = 0; i < model.parameters().size(); ++i) {
        const int p = static_cast<int>(i);
        ops.ApplyDirection(model.parameters()[i].size(), 0.1f, 1,
                           model.gradient(p), model.weight(p), model.weight(p));
      }
    };
    for (int64_t step = 0; step < 20; ++step) {
      const ForwardContext context = {.training = true, .step = step};
      const Data data = DataOf(c, kRows, whole->output_size(), step);
      const Floats logits = whole.Forward(data.features, kRows, context);
      const auto d = loss->Differentiate(logits.data(), data.targets(), kRows,
                                         1.0 / kRows);
      ASSERT_TRUE(d.ok()) << d.status();
      whole->Backward(*d, false, nullptr);
      descend(whole.ops(), *whole);
      ranks.Train(data.features, data.targets(), kRows, 1.0 / kRows, context);
      for (int r = 0; r < ranks.size(); ++r) {
        descend(*ranks[r].ops, *ranks[r].model);
      }
    }
    for (int p = 0; p < whole.num_parameters(); ++p) {
      const float* weight = whole->weight(p);
      EXPECT_LT(Error(ranks.Weight(p), Floats(weight, weight + whole.Size(p))),
                1e-5)
          << whole->parameters()[p].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, TensorParallelTest, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace tributary::testing
