// SPDX-License-Identifier: Apache-2.0
// Every case of the golden group layers_basic (PyTorch in float64) through the
// CPU's Ops.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/dropout_math.h"
#include "kernels/ops.h"
#include "tests/unit/kernels/golden_score.h"
#include "tests/unit/kernels/ops_kinds.h"

namespace tributary::testing {
namespace {

using Floats = std::vector<float>;

Floats Zeros(int64_t n) { return Floats(static_cast<size_t>(n), 0.0f); }

int64_t LastExtent(const GoldenTensor& tensor) { return tensor.shape.back(); }

void CheckLinear(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const Floats w = c.Tensor("w").Floats();
  const Floats dy = c.Tensor("dy").Floats();
  const int64_t in = LastExtent(c.Tensor("x"));
  const int64_t out = LastExtent(c.Tensor("dy"));
  const int64_t rows = c.Tensor("x").size() / in;
  Floats y = Zeros(rows * out);
  Floats dx = Zeros(rows * in);
  Floats dw = Zeros(out * in);
  ops.Gemm(false, true, rows, out, in, 1, x.data(), w.data(), 0, y.data());
  ops.Gemm(false, false, rows, in, out, 1, dy.data(), w.data(), 0, dx.data());
  ops.Gemm(true, false, out, in, rows, 1, dy.data(), x.data(), 0, dw.data());
  if (c.Flag("bias")) {
    Floats db = Zeros(out);
    ops.AddBias(rows, out, c.Tensor("b").Floats().data(), y.data());
    ops.ColumnSum(rows, out, dy.data(), 0, db.data());
    score.Expect(c, "d_b", db);
  }
  score.Expect(c, "y", y);
  score.Expect(c, "d_x", dx);
  score.Expect(c, "d_w", dw);
}

void CheckActivation(ActivationKind kind, Ops& ops, const GoldenCase& c,
                     GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const int64_t n = c.Tensor("x").size();
  Floats y = Zeros(n);
  Floats dx = c.Tensor("dy").Floats();
  ops.Activation(kind, n, x.data(), y.data());
  ops.ActivationBackward(kind, n, x.data(), y.data(), dx.data(), dx.data());
  score.Expect(c, "y", y);
  score.Expect(c, "d_x", dx);
}

void CheckSoftmax(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const Floats dy = c.Tensor("dy").Floats();
  const int64_t cols = LastExtent(c.Tensor("x"));
  const int64_t rows = c.Tensor("x").size() / cols;
  Floats y = Zeros(rows * cols);
  Floats dx = Zeros(rows * cols);
  ops.Softmax(rows, cols, x.data(), y.data());
  ops.SoftmaxBackward(rows, cols, y.data(), dy.data(), dx.data());
  score.Expect(c, "y", y);
  score.Expect(c, "d_x", dx);
}

// Ops has log softmax inside its cross entropy: with label c everywhere the
// losses are -log p[c] and their gradients p - e[c].
void CheckLogSoftmax(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const Floats dy = c.Tensor("dy").Floats();
  const int64_t cols = LastExtent(c.Tensor("x"));
  const int64_t rows = c.Tensor("x").size() / cols;
  Floats y = Zeros(rows * cols);
  Floats gradient = Zeros(rows * cols);
  Floats loss = Zeros(rows);
  std::vector<double> dx(y.size(), 0.0);
  for (int64_t label = 0; label < cols; ++label) {
    const std::vector<int64_t> labels(static_cast<size_t>(rows), label);
    ops.CrossEntropy(rows, cols, x.data(), labels.data(), {}, 1, loss.data(),
                     nullptr, gradient.data());
    for (int64_t r = 0; r < rows; ++r) {
      y[r * cols + label] = -loss[r];
      for (int64_t i = r * cols; i < (r + 1) * cols; ++i) {
        dx[i] -= double{dy[r * cols + label]} * gradient[i];
      }
    }
  }
  score.Expect(c, "y", y);
  score.Expect(c, "d_x", dx);
}

void CheckLayerNorm(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const Floats x = c.Tensor("x").Floats();
  const Floats gamma = c.Tensor("gamma").Floats();
  const Floats beta = c.Tensor("beta").Floats();
  const Floats dy = c.Tensor("dy").Floats();
  const int64_t cols = LastExtent(c.Tensor("x"));
  const int64_t rows = c.Tensor("x").size() / cols;
  Floats y = Zeros(rows * cols);
  Floats dx = Zeros(rows * cols);
  Floats mean = Zeros(rows), rstd = Zeros(rows);
  Floats dgamma = Zeros(cols), dbeta = Zeros(cols);
  const float epsilon = static_cast<float>(c.Number("eps", 1e-5));
  ops.LayerNorm(rows, cols, epsilon, x.data(), gamma.data(), beta.data(),
                y.data(), mean.data(), rstd.data());
  ops.LayerNormBackward(rows, cols, x.data(), gamma.data(), mean.data(),
                        rstd.data(), dy.data(), dx.data(), dgamma.data(),
                        dbeta.data());
  score.Expect(c, "y", y);
  score.Expect(c, "d_x", dx);
  score.Expect(c, "d_gamma", dgamma);
  score.Expect(c, "d_beta", dbeta);
}

void CheckEmbedding(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const std::vector<int64_t> ids = c.Tensor("ids").Integers();
  const Floats table = c.Tensor("w").Floats();
  const Floats dy = c.Tensor("dy").Floats();
  const int64_t count = c.Tensor("ids").size();
  const int64_t dim = LastExtent(c.Tensor("w"));
  Floats y = Zeros(count * dim);
  Floats dw = Zeros(c.Tensor("w").size());
  ops.Embedding(count, dim, ids.data(), table.data(), y.data());
  ops.EmbeddingBackward(count, dim, ids.data(), dy.data(), dw.data());
  score.Expect(c, "y", y);
  score.Expect(c, "d_w", dw);
  Floats rows;  // the same gradient as the rows that it touches
  for (int64_t row : c.Tensor("sparse_rows").Integers()) {
    rows.insert(rows.end(), dw.begin() + row * dim,
                dw.begin() + (row + 1) * dim);
  }
  score.Expect(c, "sparse_grad", rows);
}

void CheckEmbeddingBag(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const std::vector<int64_t> ids = c.Tensor("ids").Integers();
  std::vector<int64_t> offsets = c.Tensor("offsets").Integers();
  offsets.push_back(static_cast<int64_t>(ids.size()));
  const Floats table = c.Tensor("w").Floats();
  const Floats dy = c.Tensor("dy").Floats();
  const int64_t dim = LastExtent(c.Tensor("w"));
  const bool weighted = c.Has("per_sample_w");
  const Floats weights =
      weighted ? c.Tensor("per_sample_w").Floats() : Floats();
  EmbeddingBags bags;
  bags.count = c.Tensor("offsets").size();
  bags.num_ids = c.Tensor("ids").size();
  bags.ids = ids.data();
  bags.offsets = offsets.data();
  bags.weights = weighted ? weights.data() : nullptr;
  bags.mean = c.Text("mode", "") == "mean";
  Floats y = Zeros(bags.count * dim);
  Floats dw = Zeros(c.Tensor("w").size());
  Floats d_weights = Zeros(c.Tensor("ids").size());
  ops.EmbeddingBag(bags, dim, table.data(), y.data());
  ops.EmbeddingBagBackward(bags, dim, table.data(), dy.data(), dw.data(),
                           weighted ? d_weights.data() : nullptr);
  score.Expect(c, "y", y);
  score.Expect(c, "d_w", dw);
  if (weighted) score.Expect(c, "d_per_sample_w", d_weights);
}

// The golden mask is given, so it takes the place of the draws: 0 is kept at
// every p below 1, the largest draw at none above 0.
void CheckDropout(Ops& /*ops*/, const GoldenCase& c, GoldenScore& score) {
  const double p = c.Number("p", 0);
  DropoutStep step;
  step.threshold = static_cast<uint64_t>((1 - p) * 4294967296.0);
  step.scale = static_cast<float>(1 / (1 - p));
  const Floats mask = c.Tensor("mask").Floats();
  const auto apply = [&](const Floats& x) {
    Floats y;
    for (size_t i = 0; i < x.size(); ++i) {
      const uint32_t draw = mask[i] != 0 ? 0u : 0xFFFFFFFFu;
      y.push_back(DropoutElement(step, draw, x[i]));
    }
    return y;
  };
  score.Expect(c, "y", apply(c.Tensor("x").Floats()));
  score.Expect(c, "d_x", apply(c.Tensor("dy").Floats()));
}

void CheckDotInteraction(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& x = c.Tensor("x");
  const Floats values = x.Floats();
  const Floats dy = c.Tensor("dy").Floats();
  Floats y = Zeros(c.Tensor("dy").size());
  Floats dx = Zeros(x.size());
  ops.DotInteraction(x.shape[0], x.shape[1], x.shape[2], values.data(),
                     y.data());
  ops.DotInteractionBackward(x.shape[0], x.shape[1], x.shape[2], values.data(),
                             dy.data(), dx.data());
  score.Expect(c, "y", y);
  score.Expect(c, "d_x", dx);
}

using Check = std::function<void(Ops&, const GoldenCase&, GoldenScore&)>;

Check OfActivation(ActivationKind kind) {
  return [kind](Ops& ops, const GoldenCase& c, GoldenScore& score) {
    CheckActivation(kind, ops, c, score);
  };
}

TEST(GoldenLayersTest, EveryCaseOfLayersBasicIsWithinItsTolerance) {
  const std::map<std::string, Check> checks = {
      {"linear", CheckLinear},
      {"relu", OfActivation(ActivationKind::kRelu)},
      {"gelu_erf", OfActivation(ActivationKind::kGeluErf)},
      {"gelu_tanh", OfActivation(ActivationKind::kGeluTanh)},
      {"sigmoid", OfActivation(ActivationKind::kSigmoid)},
      {"tanh", OfActivation(ActivationKind::kTanh)},
      {"silu", OfActivation(ActivationKind::kSilu)},
      {"softmax", CheckSoftmax},
      {"log_softmax", CheckLogSoftmax},
      {"layernorm", CheckLayerNorm},
      {"embedding", CheckEmbedding},
      {"embedding_bag", CheckEmbeddingBag},
      {"dropout", CheckDropout},
      {"dot_interaction", CheckDotInteraction},
  };
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  GoldenScore score("layers_basic");
  for (const auto& [id, golden] : ReadGoldenGroup("layers_basic")) {
    const auto check = checks.find(golden.Text("op", ""));
    ASSERT_NE(check, checks.end()) << id;
    score.BeginCase(id);
    check->second(*ops, golden, score);
  }
  EXPECT_EQ(score.cases(), 49);
}

TEST(GoldenLayersTest, ALinearLayerInBfloat16IsWithinItsTolerance) {
  const auto ops = CreateCpuOps(ProductPrecision::kBfloat16);
  GoldenScore score("layers_basic: linear in bfloat16", kBfloat16Tolerance);
  for (const auto& [id, golden] : ReadGoldenGroup("layers_basic")) {
    if (golden.Text("op", "") != "linear") continue;
    score.BeginCase(id);
    CheckLinear(*ops, golden, score);
  }
  EXPECT_EQ(score.cases(), 7);
  EXPECT_GT(score.worst(), 0.1) << "nothing was rounded";
}

}  // namespace
}  // namespace tributary::testing
