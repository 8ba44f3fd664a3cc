// SPDX-License-Identifier: Apache-2.0
// Every case of the golden group losses (PyTorch in float64) through the CPU's
// Ops: cross entropy, BCE with logits, squared error, clipping by global norm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/optimizer/optimizer.h"
#include "kernels/ops.h"
#include "tests/unit/kernels/golden_score.h"

namespace tributary::testing {
namespace {

using Floats = std::vector<float>;

double Sum(const Floats& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

void CheckCrossEntropy(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const std::vector<int64_t> labels = c.Tensor("target").Integers();
  const int64_t rows = c.Tensor("x").shape[0];
  const int64_t classes = c.Tensor("x").shape[1];
  const Floats class_weights =
      c.Has("class_w") ? c.Tensor("class_w").Floats() : Floats();
  CrossEntropyOptions options;
  options.label_smoothing = static_cast<float>(c.Number("label_smoothing", 0));
  options.ignore_index = static_cast<int64_t>(c.Number("ignore_index", -100));
  if (c.Has("class_w")) options.class_weights = class_weights.data();

  Floats loss(labels.size()), weight(labels.size()), dx(x.size());
  ops.CrossEntropy(rows, classes, x.data(), labels.data(), options, 1,
                   loss.data(), weight.data(), nullptr);
  const bool mean = c.Text("reduction", "") == "mean";
  const double divisor = mean ? Sum(weight) : 1;
  score.Expect(c, "loss", std::vector<double>{Sum(loss) / divisor});
  ops.CrossEntropy(rows, classes, x.data(), labels.data(), options,
                   static_cast<float>(1 / divisor), loss.data(), nullptr,
                   dx.data());
  score.Expect(c, "d_x", dx);
}

void CheckBce(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const Floats targets = c.Tensor("target").Floats();
  const Floats weights =
      c.Has("weight") ? c.Tensor("weight").Floats() : Floats();
  const float pos_weight =
      c.Has("pos_weight") ? c.Tensor("pos_weight").Floats()[0] : 1.0f;
  const int64_t n = c.Tensor("x").size();
  const bool mean = c.Text("reduction", "") == "mean";
  const double divisor = mean ? static_cast<double>(n) : 1;
  Floats loss(x.size()), dx(x.size());
  ops.BceWithLogits(n, x.data(), targets.data(), pos_weight,
                    weights.empty() ? nullptr : weights.data(),
                    static_cast<float>(1 / divisor), loss.data(), dx.data());
  score.Expect(c, "loss", std::vector<double>{Sum(loss) / divisor});
  score.Expect(c, "d_x", dx);
}

void CheckSquaredError(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const Floats targets = c.Tensor("target").Floats();
  const int64_t n = c.Tensor("x").size();
  const bool mean = c.Text("reduction", "") == "mean";
  const double divisor = mean ? static_cast<double>(n) : 1;
  Floats loss(x.size()), dx(x.size());
  ops.SquaredError(n, x.data(), targets.data(), static_cast<float>(1 / divisor),
                   loss.data(), dx.data());
  score.Expect(c, "loss", std::vector<double>{Sum(loss) / divisor});
  score.Expect(c, "d_x", dx);
}

std::string Numbered(std::string name, size_t i) {
  return name.append(std::to_string(i));
}

// The norm comes from the grains of all tensors; the coefficient acts inside
// the update: plain SGD from weight 0 with rate 1 gives minus the clipped
// gradient.
void CheckClip(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  constexpr int64_t kGrain = 16;
  std::vector<Floats> gradients;
  while (c.Has(Numbered("g", gradients.size()))) {
    gradients.push_back(c.Tensor(Numbered("g", gradients.size())).Floats());
  }
  double squares = 0;
  for (const Floats& g : gradients) {
    const int64_t n = static_cast<int64_t>(g.size());
    std::vector<double> grains((g.size() + kGrain - 1) / kGrain);
    ops.GrainSquares(n, kGrain, g.data(), grains.data());
    for (double grain : grains) squares += grain;
  }
  const double norm = std::sqrt(squares);
  score.Expect(c, "norm", std::vector<double>{norm});
  const double clip = std::min(1.0, c.Number("max_norm", 0) / (norm + 1e-6));
  const OptimizerStep step =
      Optimizer(OptimizerOptions()).Prepare(1, /*learning_rate=*/1, clip);
  for (size_t i = 0; i < gradients.size(); ++i) {
    Floats weight(gradients[i].size(), 0.0f);
    ops.OptimizerUpdate(step, static_cast<int64_t>(weight.size()),
                        gradients[i].data(), weight.data(), weight.data(),
                        nullptr);
    for (float& w : weight) w = -w;
    score.Expect(c, Numbered("clipped", i), weight);
  }
}

TEST(GoldenLossesTest, EveryCaseOfLossesIsWithinItsTolerance) {
  using Check = void (*)(Ops&, const GoldenCase&, GoldenScore&);
  const std::map<std::string, Check> checks = {
      {"cross_entropy", CheckCrossEntropy},
      {"bce_with_logits", CheckBce},
      {"mse", CheckSquaredError},
      {"clip_global_norm", CheckClip},
  };
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  GoldenScore score("losses");
  for (const auto& [id, golden] : ReadGoldenGroup("losses")) {
    const auto check = checks.find(golden.Text("op", ""));
    ASSERT_NE(check, checks.end()) << id;
    score.BeginCase(id);
    check->second(*ops, golden, score);
  }
  EXPECT_EQ(score.cases(), 19);
}

}  // namespace
}  // namespace tributary::testing
