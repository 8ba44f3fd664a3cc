// SPDX-License-Identifier: Apache-2.0
// The GPT blocks of the golden group layers_attn, and the first step of
// train_gpt: logits and gradients of whole models against PyTorch in float64.
#include "tests/unit/worker/train/model/golden_gpt.h"
#include "tests/unit/kernels/golden_score.h"
#include "tests/unit/worker/train/model/model_fixture.h"
#include "worker/train/model/loss.h"

namespace tributary::testing {
namespace {

// A model does not show the gradient of x. A position embedding of zeros in
// front does: with one sample its own gradient is that of x.
void ExpectInputGradient(const GoldenCase& c, const std::string& block,
                         CpuModel& block_model, GoldenScore& score) {
  const std::vector<int64_t>& shape = c.Tensor("x").shape;
  const int64_t size = shape[1] * shape[2];
  CpuModel model(
      "sequential { position_embedding { length: " + std::to_string(shape[1]) +
          " dim: " + std::to_string(shape[2]) + " } }" + block,
      {shape[1], shape[2]}, 1);
  for (int p = 0; p < 12; ++p) {
    const float* weight = block_model->weight(p);
    model.SetWeight(p + 1, Floats(weight, weight + model.Size(p + 1)));
  }
  model.SetWeight(0, Floats(size, 0.0f));
  const Floats x = c.Tensor("x").Floats(), dy = c.Tensor("dy").Floats();
  Floats dx;
  for (int64_t row = 0; row < shape[0]; ++row) {
    model->Forward(x.data() + row * size, 1, {});
    model->Backward(dy.data() + row * size, false, nullptr);
    const Floats gradient = model.Gradient(0);
    dx.insert(dx.end(), gradient.begin(), gradient.end());
  }
  score.Expect(c, "d_x", dx);
}

TEST(GoldenGptTest, EveryBlockIsWithinItsTolerance) {
  const std::vector<std::string> names = GoldenBlockNames();
  GoldenScore score("layers_attn, blocks");
  for (const auto& [id, golden] : ReadGoldenGroup("layers_attn")) {
    if (golden.Text("op", "") != "gpt_block") continue;
    score.BeginCase(id);
    const std::vector<int64_t>& shape = golden.Tensor("x").shape;
    const std::string block =
        GptBlock(shape[2], static_cast<int64_t>(golden.Number("heads", 1)),
                 golden.Text("gelu", ""), true);
    CpuModel model(block, {shape[1], shape[2]}, shape[0]);
    ASSERT_EQ(model.num_parameters(), 12);
    for (int p = 0; p < 12; ++p) {
      model.SetWeight(p, golden.Tensor(names[p]).Floats());
    }
    const Floats x = golden.Tensor("x").Floats();
    score.Expect(golden, "y", model.Forward(x, shape[0]));
    const Floats dy = golden.Tensor("dy").Floats();
    model->Backward(dy.data(), false, nullptr);
    for (int p = 0; p < 12; ++p) {
      score.Expect(golden, "d_" + names[p], model.Gradient(p));
    }
    ExpectInputGradient(golden, block, model, score);
    // A second pass that accumulates doubles all gradients.
    model->Forward(x.data(), shape[0], {});
    model->Backward(dy.data(), /*accumulate=*/true, nullptr);
    for (int p = 0; p < 12; ++p) {
      Floats half = model.Gradient(p);
      for (float& g : half) g /= 2;
      score.Expect(golden, "d_" + names[p], half);
    }
  }
  EXPECT_EQ(score.cases(), 2);
}

TEST(GoldenGptTest, TheFirstStepOfEveryTrainingIsWithinItsTolerance) {
  GoldenScore score("train_gpt, first step");
  for (const auto& [id, golden] : ReadGoldenGroup("train_gpt")) {
    score.BeginCase(id);
    const GoldenGpt gpt = GoldenGptOf(golden);
    const auto rows = static_cast<int64_t>(golden.Number("B", 0));
    const auto time = static_cast<int64_t>(golden.Number("T", 0));
    CpuModel model(gpt.layers, {time}, rows);
    ASSERT_EQ(model.num_parameters(), static_cast<int>(gpt.names.size()));
    for (int p = 0; p < model.num_parameters(); ++p) {
      model.SetWeight(p, golden.Tensor("init." + gpt.names[p]).Floats());
    }
    std::vector<double> ids = golden.Tensor("idx").Doubles();
    const Floats x(ids.begin(), ids.begin() + rows * time);
    const std::vector<int64_t> labels = golden.Tensor("target").Integers();
    const auto loss = *Loss::Create(FromText<v1::LossSpec>("cross_entropy {}"),
                                    {.ops = &model.ops(),
                                     .max_rows = rows,
                                     .outputs = 65,
                                     .positions = time});
    const float* logits = model->Forward(x.data(), rows, {});
    const int64_t given = golden.Tensor("logits0").size();  // of two samples
    score.Expect(golden, "logits0", Floats(logits, logits + given));
    const auto d_logits = loss->Differentiate(logits, {.labels = labels.data()},
                                              rows, 1.0 / rows);
    ASSERT_TRUE(d_logits.ok()) << d_logits.status();
    EXPECT_NEAR(*loss->Sum() / rows, golden.Tensor("loss").Doubles()[0], 1e-5);
    std::vector<int> order;
    model->Backward(*d_logits, false, [&](int p) { order.push_back(p); });
    for (int p = 0; p < model.num_parameters(); ++p) {
      if (!golden.Has("grad0." + gpt.names[p])) continue;
      score.Expect(golden, "grad0." + gpt.names[p], model.Gradient(p));
    }
    // Last parameter first, each once.
    ASSERT_EQ(order.size(), gpt.names.size());
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(order[i], static_cast<int>(order.size() - 1 - i));
    }
  }
  EXPECT_EQ(score.cases(), 2);
}

}  // namespace
}  // namespace tributary::testing
