// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// A batch of ResNet images has far more columns than a tile of the device
// (kernels/convolution_tiles.h). Covers several whole samples per tile with a
// rest, and samples larger than a tile.
Outputs RunConvolutionTiles(Ops& ops) {
  Outputs outputs;
  for (const auto& [side, rows] : {std::pair<int64_t, int64_t>{112, 11},
                                   std::pair<int64_t, int64_t>{370, 2}}) {
    const Convolution c{3, 4, 1, {side, side, 3, 3, 1, 1, 1, 1, 1, 1}};
    Floats x(ops, Numbers(rows * c.in_size(), 1));
    Floats w(ops, Numbers(c.out_channels * c.filter_size(), 2));
    Floats b(ops, Numbers(c.out_channels, 3));
    Floats dy(ops, Numbers(rows * c.out_size(), 4));
    Floats y(ops, Zeros(rows * c.out_size()));
    Floats dx(ops, Zeros(rows * c.in_size()));
    Floats dw(ops, Numbers(c.out_channels * c.filter_size(), 5));
    Floats db(ops, Numbers(c.out_channels, 6));
    Floats scratch(ops, Zeros(ops.ConvolutionScratch(c, rows)));
    ops.Convolve(c, rows, x.data(), w.data(), b.data(), y.data(),
                 scratch.data());
    ops.ConvolveBackward(c, rows, x.data(), w.data(), dy.data(), dx.data(),
                         1.0f, dw.data(), db.data(), scratch.data());
    for (const Floats* out : {&y, &dx, &dw, &db}) {
      outputs.push_back(out->Download());
    }
  }
  return outputs;
}

// The shape of a GPT-2 head: 1024 positions of 64.
Outputs RunLongAttention(Ops& ops) {
  AttentionShape s{1, 2, 1024, 1024, 64, /*causal=*/true};
  s.scale = 0.125f;
  s.query = s.key = s.out = {1024 * 128, 128, 64};
  const int64_t n = 1024 * 128;
  Floats q(ops, Numbers(n, 1)), k(ops, Numbers(n, 2)), v(ops, Numbers(n, 3));
  Floats dy(ops, Numbers(n, 4)), y(ops, Zeros(n));
  Floats dq(ops, Zeros(n)), dk(ops, Zeros(n)), dv(ops, Zeros(n));
  Floats log_sum(ops, Zeros(s.rows()));
  Floats scratch(ops, Zeros(ops.AttentionScratch(s)));
  ops.Attention(s, q.data(), k.data(), v.data(), y.data(), log_sum.data(),
                scratch.data());
  ops.AttentionBackward(s, q.data(), k.data(), v.data(), y.data(),
                        log_sum.data(), dy.data(), dq.data(), dk.data(),
                        dv.data(), scratch.data());
  Outputs outputs;
  for (const Floats* out : {&y, &log_sum, &dq, &dk, &dv}) {
    outputs.push_back(out->Download());
  }
  return outputs;
}

// GPT-2's vocabulary.
Outputs RunWideCrossEntropy(Ops& ops) {
  const int64_t rows = 96, classes = 50257;
  std::vector<float> values = Numbers(rows * classes, 1);
  for (float& v : values) v *= 10;
  Floats logits(ops, values), loss(ops, Zeros(rows));
  Ids labels(ops, Integers(rows, classes, 2));
  ops.CrossEntropy(rows, classes, logits.data(), labels.data(), {}, 0.01f,
                   loss.data(), nullptr, logits.data());
  return {loss.Download(), logits.Download()};
}

// As many ids as a batch of GPT-2 has, most of them repeated.
Outputs RunManyIds(Ops& ops) {
  const int64_t count = 8192, dim = 96, tokens = 3000;
  Floats dy(ops, Numbers(count * dim, 1)), table(ops, Zeros(tokens * dim));
  Ids ids(ops, Integers(count, tokens, 2));
  ops.EmbeddingBackward(count, dim, ids.data(), dy.data(), table.data());
  return {table.Download()};
}

// The matrices of one layer, one of them with an odd extent.
Outputs RunWideProducts(Ops& ops) {
  const int64_t m = 256, n = 5025, k = 768;
  Floats a(ops, Numbers(m * k, 1)), b(ops, Numbers(n * k, 2));
  Floats c(ops, Zeros(m * n)), d(ops, Zeros(m * k)), e(ops, Zeros(n * k));
  ops.Gemm(false, true, m, n, k, 1, a.data(), b.data(), 0, c.data());
  ops.Gemm(false, false, m, k, n, 1, c.data(), b.data(), 0, d.data());
  ops.Gemm(true, false, n, k, m, 1, c.data(), a.data(), 0, e.data());
  Floats f(ops, Zeros(k * n));
  ops.Gemm(true, false, k, n, m, 1, a.data(), c.data(), 0, f.data());
  return {c.Download(), d.Download(), e.Download(), f.Download()};
}

}  // namespace

std::vector<AgreementCheck> LargeAgreementChecks() {
  return {
      {"convolution in tiles", 1e-5, RunConvolutionTiles, /*products=*/true},
      {"attention, 1024 positions", 1e-5, RunLongAttention, /*products=*/true,
       /*rounds_sums=*/true},
      {"cross entropy, 50257 classes", 1e-6, RunWideCrossEntropy},
      {"embedding backward, 8192 ids", 0, RunManyIds},
      {"products of a layer", 1e-5, RunWideProducts, /*products=*/true,
       /*rounds_sums=*/true},
  };
}

}  // namespace tributary::testing
