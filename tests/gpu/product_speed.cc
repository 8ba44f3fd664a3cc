// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tuple>

#include "kernels/ops.h"
#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

// Floating-point operations per second, in units of 1e12.
double Rate(Ops& ops, double operations, const std::function<void()>& call) {
  return operations / SecondsPerCall(ops, call) * 1e-12;
}

double GemmRate(Ops& ops, const SpeedArrays& a, int64_t m, int64_t n,
                int64_t k) {
  return Rate(ops, 2.0 * static_cast<double>(m) * n * k,
              [&] { ops.Gemm(false, true, m, n, k, 1, a[0], a[1], 0, a[2]); });
}

// 3 x 3 over 64 channels of 56 x 56, as in a ResNet's first blocks.
void AddConvolution(Ops& ops, const SpeedArrays& a,
                    const std::string& precision, double ceiling,
                    std::vector<Speed>* speeds) {
  constexpr int64_t kRows = 64;
  const Convolution c{64, 64, 1, {56, 56, 3, 3, 1, 1, 1, 1, 1, 1}};
  auto* scratch = static_cast<float*>(
      ops.Allocate(ops.ConvolutionScratch(c, kRows) * sizeof(float)));
  if (scratch == nullptr) return;
  const double operations =
      2.0 * kRows * static_cast<double>(c.out_size()) * c.filter_size();
  speeds->push_back(
      {"convolution, 64 x 56 x 56" + precision, "TFLOP/s",
       Rate(
           ops, operations,
           [&] { ops.Convolve(c, kRows, a[0], a[1], nullptr, a[2], scratch); }),
       ceiling});
  speeds->push_back({"convolution, backward" + precision, "TFLOP/s",
                     Rate(ops, 2 * operations,
                          [&] {
                            ops.ConvolveBackward(c, kRows, a[0], a[1], a[2],
                                                 a[3], 0, a[4], nullptr,
                                                 scratch);
                          }),
                     ceiling});
  ops.Free(scratch);
}

// 16 heads of 64 over 1024 positions, without a causal mask.
void AddAttention(Ops& ops, const SpeedArrays& a, const std::string& precision,
                  double ceiling, std::vector<Speed>* speeds) {
  AttentionShape s;
  s.batch = 8;
  s.heads = 16;
  s.queries = s.keys = 1024;
  s.dim = 64;
  s.scale = 0.125f;
  const AttentionStrides strides{s.queries * s.heads * s.dim, s.heads * s.dim,
                                 s.dim};
  s.query = s.key = s.out = strides;
  const int64_t n = s.batch * strides.batch;
  float *const q = a[0], *const k = q + n, *const v = k + n, *const dy = v + n;
  float *const dq = a[1], *const dk = dq + n, *const dv = dk + n;
  float *const y = a[2], *const log_sum = a[3], *const scratch = a[4];
  // Forward has two products, queries by keys and scores by values; backward
  // has five.
  const double product = 2.0 * static_cast<double>(s.rows()) * s.keys * s.dim;
  speeds->push_back(
      {"attention, 1024 positions" + precision, "TFLOP/s",
       Rate(ops, 2 * product,
            [&] { ops.Attention(s, q, k, v, y, log_sum, scratch); }),
       ceiling});
  speeds->push_back({"attention, backward" + precision, "TFLOP/s",
                     Rate(ops, 5 * product,
                          [&] {
                            ops.AttentionBackward(s, q, k, v, y, log_sum, dy,
                                                  dq, dk, dv, scratch);
                          }),
                     ceiling});
}

}  // namespace

void AddProducts(Ops& ops, const SpeedArrays& a, const std::string& precision,
                 std::vector<Speed>* speeds) {
  // The ceiling is the rate of cuBLAS for large matrices.
  const double ceiling = GemmRate(ops, a, 8192, 8192, 8192);
  for (const auto& [name, m, n, k] :
       {std::tuple<std::string, int64_t, int64_t, int64_t>{
            "linear 128 x 1024 x 1024", 128, 1024, 1024},
        {"linear 4096 x 4096 x 4096", 4096, 4096, 4096},
        {"linear 8192 x 8192 x 8192", 8192, 8192, 8192},
        {"linear 8192 x 3072 x 768", 8192, 3072, 768},
        {"linear 1024 x 50257 x 768", 1024, 50257, 768},
        {"linear 1024 x 50304 x 768", 1024, 50304, 768}}) {
    speeds->push_back(
        {name + precision, "TFLOP/s", GemmRate(ops, a, m, n, k), ceiling});
  }
  AddConvolution(ops, a, precision, ceiling, speeds);
  AddAttention(ops, a, precision, ceiling, speeds);
}

}  // namespace tributary::testing
