// SPDX-License-Identifier: Apache-2.0
// The golden group layers_attn (PyTorch in float64), except its whole blocks,
// which are models (tests/unit/worker/train/model); on the CPU and on a CUDA
// device where one answers.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "kernels/device.h"
#include "tests/gpu/check_arrays.h"
#include "tests/unit/kernels/golden_score.h"
#include "tests/unit/kernels/ops_kinds.h"

namespace tributary::testing {
namespace {

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// Operands [batch, heads, rows, dim].
AttentionStrides HeadsFirst(const GoldenTensor& t) {
  return {t.shape[1] * t.shape[2] * t.shape[3], t.shape[3],
          t.shape[2] * t.shape[3]};
}

void CheckDotProduct(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& query = c.Tensor("q");
  const GoldenTensor& key = c.Tensor("k");
  AttentionShape s;
  s.batch = query.shape[0];
  s.heads = query.shape[1];
  s.queries = query.shape[2];
  s.keys = key.shape[2];
  s.dim = query.shape[3];
  s.causal = c.Flag("causal");
  s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.dim)));
  s.query = s.out = HeadsFirst(query);
  s.key = HeadsFirst(key);
  Floats q(ops, query.Floats()), k(ops, key.Floats());
  Floats v(ops, c.Tensor("v").Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats y(ops, Zeros(query.size())), log_sum(ops, Zeros(s.rows()));
  Floats dq(ops, Zeros(query.size())), dk(ops, Zeros(key.size()));
  Floats dv(ops, Zeros(key.size()));
  Floats scratch(ops, Zeros(ops.AttentionScratch(s)));
  ops.Attention(s, q.data(), k.data(), v.data(), y.data(), log_sum.data(),
                scratch.data());
  ops.AttentionBackward(s, q.data(), k.data(), v.data(), y.data(),
                        log_sum.data(), dy.data(), dq.data(), dk.data(),
                        dv.data(), scratch.data());
  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_q", dq.Download());
  score.Expect(c, "d_k", dk.Download());
  score.Expect(c, "d_v", dv.Download());
}

// As torch.nn.MultiheadAttention does it: one product makes q, k and v, which
// stand side by side in the rows of qkv.
void CheckMultiHead(Ops& ops, const GoldenCase& c, GoldenScore& score) {
  const GoldenTensor& in = c.Tensor("x");
  const int64_t batch = in.shape[0], time = in.shape[1], width = in.shape[2];
  const int64_t rows = batch * time;
  AttentionShape s;
  s.batch = batch;
  s.heads = static_cast<int64_t>(c.Number("heads", 1));
  s.queries = s.keys = time;
  s.dim = width / s.heads;
  s.causal = c.Flag("causal");
  s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.dim)));
  s.query = s.key = {time * 3 * width, 3 * width, s.dim};
  s.out = {time * width, width, s.dim};
  std::vector<int64_t> lengths;
  for (double length : c.Numbers("key_lengths")) {
    lengths.push_back(static_cast<int64_t>(length));
  }
  Ids key_lengths(ops, lengths);
  if (!lengths.empty()) s.key_lengths = key_lengths.data();

  Floats x(ops, in.Floats()), dy(ops, c.Tensor("dy").Floats());
  Floats w_in(ops, c.Tensor("w_in").Floats());
  Floats b_in(ops, c.Tensor("b_in").Floats());
  Floats w_out(ops, c.Tensor("w_out").Floats());
  Floats b_out(ops, c.Tensor("b_out").Floats());
  Floats qkv(ops, Zeros(rows * 3 * width)), d_qkv(ops, Zeros(rows * 3 * width));
  Floats context(ops, Zeros(rows * width)), d_context(ops, Zeros(rows * width));
  Floats log_sum(ops, Zeros(s.rows()));
  Floats y(ops, Zeros(rows * width)), dx(ops, Zeros(rows * width));
  Floats d_w_in(ops, Zeros(3 * width * width)), d_b_in(ops, Zeros(3 * width));
  Floats d_w_out(ops, Zeros(width * width)), d_b_out(ops, Zeros(width));
  Floats scratch(ops, Zeros(ops.AttentionScratch(s)));

  ops.Gemm(false, true, rows, 3 * width, width, 1, x.data(), w_in.data(), 0,
           qkv.data());
  ops.AddBias(rows, 3 * width, b_in.data(), qkv.data());
  ops.Attention(s, qkv.data(), qkv.data() + width, qkv.data() + 2 * width,
                context.data(), log_sum.data(), scratch.data());
  ops.Gemm(false, true, rows, width, width, 1, context.data(), w_out.data(), 0,
           y.data());
  ops.AddBias(rows, width, b_out.data(), y.data());

  ops.ColumnSum(rows, width, dy.data(), 0, d_b_out.data());
  ops.Gemm(true, false, width, width, rows, 1, dy.data(), context.data(), 0,
           d_w_out.data());
  ops.Gemm(false, false, rows, width, width, 1, dy.data(), w_out.data(), 0,
           d_context.data());
  ops.AttentionBackward(s, qkv.data(), qkv.data() + width,
                        qkv.data() + 2 * width, context.data(), log_sum.data(),
                        d_context.data(), d_qkv.data(), d_qkv.data() + width,
                        d_qkv.data() + 2 * width, scratch.data());
  ops.ColumnSum(rows, 3 * width, d_qkv.data(), 0, d_b_in.data());
  ops.Gemm(true, false, 3 * width, width, rows, 1, d_qkv.data(), x.data(), 0,
           d_w_in.data());
  ops.Gemm(false, false, rows, width, 3 * width, 1, d_qkv.data(), w_in.data(),
           0, dx.data());

  score.Expect(c, "y", y.Download());
  score.Expect(c, "d_x", dx.Download());
  score.Expect(c, "d_w_in", d_w_in.Download());
  score.Expect(c, "d_b_in", d_b_in.Download());
  score.Expect(c, "d_w_out", d_w_out.Download());
  score.Expect(c, "d_b_out", d_b_out.Download());
}

class GoldenAttentionTest : public ::testing::TestWithParam<OpsKind> {};

TEST_P(GoldenAttentionTest, EveryAttentionIsWithinItsTolerance) {
  std::string why;
  const std::unique_ptr<Ops> ops =
      CreateOps(GetParam().device, &why, 0, GetParam().precision);
  if (ops == nullptr) GTEST_SKIP() << "skipped: no device (" << why << ")";
  GoldenScore score("layers_attn without blocks",
                    GetParam().rounds() ? kBfloat16Tolerance : 0);
  for (const auto& [id, golden] : ReadGoldenGroup("layers_attn")) {
    const std::string op = golden.Text("op", "");
    if (op == "gpt_block") continue;
    score.BeginCase(id);
    if (op == "sdpa") {
      CheckDotProduct(*ops, golden, score);
    } else {
      ASSERT_EQ(op, "mha");
      CheckMultiHead(*ops, golden, score);
    }
  }
  EXPECT_EQ(score.cases(), 7);
  if (GetParam().rounds()) {
    EXPECT_GT(score.worst(), 0.1) << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenAttentionTest,
                         ::testing::ValuesIn(kAllOpsKinds),
                         [](const auto& info) { return info.param.Name(); });

}  // namespace
}  // namespace tributary::testing
