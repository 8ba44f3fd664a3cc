// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

std::vector<float> Zeros(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), 0.0f);
}

// Plain; a stride that leaves rows over; dilated groups with wide padding; a
// window as large as the image; enough pixels for several tiles on the CPU; 1 x
// 1 filters with few and with many weights for the pixels, in groups, and with
// a stride; planes that the device multiplies one by one.
std::vector<Convolution> Convolutions() {
  return {
      {1, 4, 1, {8, 8, 3, 3, 1, 1, 1, 1, 1, 1}},
      {3, 5, 1, {9, 8, 5, 2, 2, 3, 2, 1, 1, 1}},
      {4, 6, 2, {7, 6, 3, 3, 1, 1, 2, 2, 2, 2}},
      {2, 3, 1, {5, 4, 5, 4, 1, 1, 0, 0, 1, 1}},
      {2, 2, 1, {70, 41, 3, 3, 1, 1, 1, 1, 1, 1}},
      {4, 6, 2, {10, 10, 1, 1, 1, 1, 0, 0, 1, 1}},
      {80, 90, 1, {8, 8, 1, 1, 1, 1, 0, 0, 1, 1}},
      {4, 6, 1, {14, 14, 1, 1, 2, 2, 0, 0, 1, 1}},
      {4, 6, 2, {14, 15, 3, 3, 1, 1, 1, 1, 1, 1}},
  };
}

Outputs RunConvolution(Ops& ops) {
  Outputs outputs;
  for (const Convolution& c : Convolutions()) {
    for (const int64_t rows : {1, 7}) {
      Floats x(ops, Numbers(rows * c.in_size(), 1));
      Floats w(ops, Numbers(c.out_channels * c.filter_size(), 2));
      Floats b(ops, Numbers(c.out_channels, 3));
      Floats dy(ops, Numbers(rows * c.out_size(), 4));
      Floats y(ops, Zeros(rows * c.out_size()));
      Floats dx(ops, Numbers(rows * c.in_size(), 5));
      Floats dw(ops, Numbers(c.out_channels * c.filter_size(), 6));
      Floats db(ops, Numbers(c.out_channels, 7));
      Floats scratch(ops, Zeros(ops.ConvolutionScratch(c, rows)));
      const bool first = rows == 1;  // no bias; overwrites dw
      ops.Convolve(c, rows, x.data(), w.data(), first ? nullptr : b.data(),
                   y.data(), scratch.data());
      ops.ConvolveBackward(c, rows, x.data(), w.data(), dy.data(), dx.data(),
                           first ? 0.0f : 1.0f, dw.data(), db.data(),
                           scratch.data());
      for (const Floats* out : {&y, &dx, &dw, &db}) {
        outputs.push_back(out->Download());
      }
    }
  }
  return outputs;
}

Outputs RunChannelSum(Ops& ops) {
  Outputs outputs;
  for (const int64_t pixels : {1, 49, 1037}) {
    for (const int64_t rows : {0, 1, 13}) {
      Floats x(ops, Numbers(rows * 5 * pixels, 1));
      Floats out(ops, Numbers(5, 2));
      ops.ChannelSum(rows, 5, pixels, x.data(), 1, out.data());
      outputs.push_back(out.Download());
      ops.ChannelSum(rows, 5, pixels, x.data(), 0, out.data());
      outputs.push_back(out.Download());
    }
  }
  return outputs;
}

// One value; fewer and more features than a warp, with a remainder of rows;
// small and large images. Sums have a fixed order, so all bits agree.
Outputs RunBatchNorm(Ops& ops) {
  Outputs outputs;
  for (const BatchNormShape& s :
       {BatchNormShape{1, 1, 1}, BatchNormShape{5, 3, 1},
        BatchNormShape{131, 70, 1}, BatchNormShape{1, 2, 9},
        BatchNormShape{37, 5, 49}, BatchNormShape{3, 33, 1037}}) {
    std::vector<float> values = Numbers(s.size(), 1);
    for (float& v : values) v = v * 3 + 20;
    Floats x(ops, values);
    Floats gamma(ops, Numbers(s.channels, 2)),
        beta(ops, Numbers(s.channels, 3));
    Floats y(ops, Zeros(s.size())), dx(ops, Zeros(s.size()));
    Floats mean(ops, Zeros(s.channels)), rstd(ops, Zeros(s.channels));
    Floats variance(ops, Zeros(s.channels));
    Floats dy(ops, Numbers(s.size(), 4));
    Floats dgamma(ops, Numbers(s.channels, 5));
    Floats dbeta(ops, Numbers(s.channels, 6));
    ops.BatchNorm(s, 1e-5f, x.data(), gamma.data(), beta.data(), y.data(),
                  mean.data(), rstd.data(), variance.data());
    for (const float keep : {1.0f, 0.0f}) {
      ops.BatchNormBackward(s, x.data(), gamma.data(), mean.data(), rstd.data(),
                            dy.data(), keep, keep == 0 ? nullptr : dx.data(),
                            dgamma.data(), dbeta.data());
      outputs.push_back(dgamma.Download());
      outputs.push_back(dbeta.Download());
    }
    for (const Floats* out : {&y, &mean, &rstd, &variance, &dx}) {
      outputs.push_back(out->Download());
    }
    ops.BatchNormWith(s, 1e-3f, x.data(), gamma.data(), beta.data(),
                      mean.data(), variance.data(), y.data());
    outputs.push_back(y.Download());
  }
  return outputs;
}

// y, the statistics and dx. The gradients of gamma and beta are a separate
// check, because their sums over rows have no fixed order.
Outputs RunGroupNorm(Ops& ops, bool parameters) {
  Outputs rows, sums;
  for (const auto& [s, groups] : {std::pair(BatchNormShape{1, 1, 1}, 1),
                                  std::pair(BatchNormShape{5, 6, 1}, 3),
                                  std::pair(BatchNormShape{2, 3, 9}, 1),
                                  std::pair(BatchNormShape{37, 6, 49}, 2),
                                  std::pair(BatchNormShape{3, 33, 1037}, 33)}) {
    std::vector<float> values = Numbers(s.size(), 1);
    for (float& v : values) v = v * 3 + 20;
    Floats x(ops, values), dy(ops, Numbers(s.size(), 4));
    Floats gamma(ops, Numbers(s.channels, 2));
    Floats beta(ops, Numbers(s.channels, 3));
    Floats y(ops, Zeros(s.size())), dx(ops, Zeros(s.size()));
    Floats mean(ops, Zeros(s.rows * groups));
    Floats rstd(ops, Zeros(s.rows * groups));
    Floats dgamma(ops, Numbers(s.channels, 5));
    Floats dbeta(ops, Numbers(s.channels, 6));
    ops.GroupNorm(s, groups, 1e-5f, x.data(), gamma.data(), beta.data(),
                  y.data(), mean.data(), rstd.data());
    for (float* to : {dx.data(), static_cast<float*>(nullptr)}) {
      ops.GroupNormBackward(s, groups, x.data(), gamma.data(), mean.data(),
                            rstd.data(), dy.data(), to, dgamma.data(),
                            dbeta.data());
      sums.push_back(dgamma.Download());
      sums.push_back(dbeta.Download());
    }
    for (const Floats* out : {&y, &mean, &rstd, &dx}) {
      rows.push_back(out->Download());
    }
  }
  return parameters ? sums : rows;
}

std::vector<Window> Pools() {
  return {{8, 8, 2, 2, 2, 2, 0, 0, 1, 1},
          {7, 9, 2, 2, 2, 2, 0, 0, 1, 1},
          {7, 9, 3, 3, 2, 2, 1, 1, 1, 1},
          {5, 6, 3, 2, 1, 2, 1, 1, 1, 1},
          {5, 6, 5, 6, 5, 6, 0, 0, 1, 1}};
}

// Few different values, so that ties occur.
Outputs RunMaxPool(Ops& ops) {
  Outputs outputs;
  const int64_t planes = 6;
  for (const Window& w : Pools()) {
    std::vector<float> values;
    for (int64_t i : Integers(planes * w.in_pixels(), 4, 1)) {
      values.push_back(static_cast<float>(i));
    }
    Floats x(ops, values);
    Floats y(ops, Zeros(planes * w.out_pixels()));
    DeviceArray<int32_t> argmax(ops,
                                std::vector<int32_t>(planes * w.out_pixels()));
    Floats dy(ops, Numbers(planes * w.out_pixels(), 2));
    Floats dx(ops, Numbers(planes * w.in_pixels(), 3));
    ops.MaxPool(w, planes, x.data(), y.data(), argmax.data());
    ops.MaxPoolBackward(w, planes, dy.data(), argmax.data(), dx.data());
    outputs.push_back(y.Download());
    outputs.push_back(argmax.Download());
    outputs.push_back(dx.Download());
  }
  return outputs;
}

Outputs RunAveragePool(Ops& ops) {
  Outputs outputs;
  const int64_t planes = 6;
  for (const Window& w : Pools()) {
    for (const bool padding : {false, true}) {
      Floats x(ops, Numbers(planes * w.in_pixels(), 1));
      Floats y(ops, Zeros(planes * w.out_pixels()));
      Floats dy(ops, Numbers(planes * w.out_pixels(), 2));
      Floats dx(ops, Numbers(planes * w.in_pixels(), 3));
      ops.AveragePool(w, padding, planes, x.data(), y.data());
      ops.AveragePoolBackward(w, padding, planes, dy.data(), dx.data());
      outputs.push_back(y.Download());
      outputs.push_back(dx.Download());
    }
  }
  return outputs;
}

struct AttentionCase {
  int64_t batch, heads, queries, keys, dim;
  bool causal, lengths;
};

// One query; heads shorter and longer than a warp; fewer queries than keys;
// padded keys; more queries than the CPU processes at a time.
Outputs RunAttention(Ops& ops) {
  Outputs outputs;
  for (const AttentionCase& a : {AttentionCase{1, 1, 1, 1, 3, true, false},
                                 {2, 3, 17, 17, 7, true, false},
                                 {2, 2, 4, 9, 40, false, false},
                                 {3, 2, 33, 33, 100, false, true},
                                 {1, 2, 150, 150, 16, true, false},
                                 {1, 1, 12, 12, 256, true, true}}) {
    AttentionShape s{a.batch, a.heads, a.queries, a.keys, a.dim, a.causal};
    s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(a.dim)));
    const int64_t width = a.heads * a.dim;
    s.query = s.out = {a.queries * width, width, a.dim};
    s.key = {a.keys * width, width, a.dim};
    std::vector<int64_t> lengths = Integers(a.batch, a.keys, 9);
    // With a single key the scores' gradient would be pure rounding error.
    for (int64_t& length : lengths) length = std::max(length, a.keys / 2);
    Ids key_lengths(ops, lengths);
    if (a.lengths) s.key_lengths = key_lengths.data();
    std::vector<float> large = Numbers(a.batch * a.queries * width, 1);
    for (float& v : large) v *= 5;
    Floats q(ops, large);
    Floats k(ops, Numbers(a.batch * a.keys * width, 2));
    Floats v(ops, Numbers(a.batch * a.keys * width, 3));
    Floats dy(ops, Numbers(a.batch * a.queries * width, 4));
    Floats y(ops, Zeros(a.batch * a.queries * width));
    Floats dq(ops, Zeros(a.batch * a.queries * width));
    Floats dk(ops, Zeros(a.batch * a.keys * width));
    Floats dv(ops, Zeros(a.batch * a.keys * width));
    Floats log_sum(ops, Zeros(s.rows()));
    Floats scratch(ops, Zeros(ops.AttentionScratch(s)));
    ops.Attention(s, q.data(), k.data(), v.data(), y.data(), log_sum.data(),
                  scratch.data());
    ops.AttentionBackward(s, q.data(), k.data(), v.data(), y.data(),
                          log_sum.data(), dy.data(), dq.data(), dk.data(),
                          dv.data(), scratch.data());
    for (const Floats* out : {&y, &log_sum, &dq, &dk, &dv}) {
      outputs.push_back(out->Download());
    }
  }
  return outputs;
}

// A query of NaNs, a query that sees a key of NaNs, and others beside them:
// NaNs must appear exactly in the outputs that see them.
Outputs RunAttentionOfNans(Ops& ops) {
  AttentionShape s{1, 2, 40, 40, 7, /*causal=*/true};
  s.scale = 0.3f;
  s.query = s.key = s.out = {40 * 14, 14, 7};
  std::vector<float> queries = Numbers(40 * 14, 1), keys = Numbers(40 * 14, 2);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (int d = 0; d < 7; ++d) queries[3 * 14 + d] = kNan;  // in the first head
  for (int d = 7; d < 14; ++d) keys[36 * 14 + d] = kNan;   // in the second
  Floats q(ops, queries), k(ops, keys), v(ops, Numbers(40 * 14, 3));
  Floats y(ops, Zeros(40 * 14)), log_sum(ops, Zeros(s.rows()));
  Floats scratch(ops, Zeros(ops.AttentionScratch(s)));
  ops.Attention(s, q.data(), k.data(), v.data(), y.data(), log_sum.data(),
                scratch.data());
  return {y.Download(), log_sum.Download()};
}

Outputs RunAdd(Ops& ops) {
  Floats x(ops, Numbers(7 * 33, 1)), b(ops, Numbers(7 * 33, 2));
  Floats y(ops, Zeros(7 * 33));
  Outputs outputs;
  ops.Add(7, 33, x.data(), b.data(), y.data());
  outputs.push_back(y.Download());
  ops.Add(1, 7 * 33, x.data(), b.data(), x.data());
  outputs.push_back(x.Download());
  return outputs;
}

Outputs RunToIds(Ops& ops) {
  std::vector<float> numbers;
  for (int64_t id : Integers(1001, 1 << 24, 1)) {
    numbers.push_back(static_cast<float>(id));
  }
  Floats x(ops, numbers);
  Ids ids(ops, std::vector<int64_t>(numbers.size()));
  Outputs outputs;
  ops.ToIds(1001, x.data(), 0, 1 << 24, ids.data());
  outputs.push_back(ids.Download());
  ops.ToIds(1001, x.data(), 1 << 22, 1 << 23, ids.data());
  outputs.push_back(ids.Download());
  return outputs;
}

// Copies columns of a wider matrix into another matrix.
Outputs RunCopyMatrix(Ops& ops) {
  Floats x(ops, Numbers(9 * 37, 1)), y(ops, Numbers(9 * 50, 2));
  ops.CopyMatrix(9, 13, x.data() + 5, 37, y.data() + 11, 50);
  ops.CopyMatrix(0, 13, x.data(), 37, y.data(), 50);
  ops.CopyMatrix(9, 0, x.data(), 37, y.data(), 50);
  return {y.Download()};
}

}  // namespace

void AddModelChecks(std::vector<AgreementCheck>* checks) {
  checks->push_back({"convolution", 3e-6, RunConvolution, /*products=*/true});
  checks->push_back({"channel sum", 1e-6, RunChannelSum});
  checks->push_back({"batch norm", 0, RunBatchNorm});
  checks->push_back(
      {"group norm", 0, [](Ops& ops) { return RunGroupNorm(ops, false); }});
  checks->push_back({"group norm gamma, beta", 2e-6,
                     [](Ops& ops) { return RunGroupNorm(ops, true); }});
  checks->push_back({"max pool", 0, RunMaxPool});
  checks->push_back({"average pool", 0, RunAveragePool});
  checks->push_back({"attention", 5e-6, RunAttention, /*products=*/true,
                     /*rounds_sums=*/true});
  checks->push_back({"attention of NaNs", 5e-6, RunAttentionOfNans,
                     /*products=*/true, /*rounds_sums=*/true});
  checks->push_back({"add", 0, RunAdd});
  checks->push_back({"ids from numbers", 0, RunToIds});
  checks->push_back({"copy matrix", 0, RunCopyMatrix});
}

}  // namespace tributary::testing
