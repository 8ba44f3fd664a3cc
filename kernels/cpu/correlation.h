// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// The inner loops of direct convolution: sums of shifted planes. Compilers do
// not keep such sums in registers on their own, so the loops use vector types
// and are compiled once per instruction set. As with BLAS, the machine decides
// whether multiply-adds are fused, and so it decides the last bits.
struct Correlations {
  // Floats in a vector.
  int64_t lanes;

  // out[o * out_row + p] = bias[o] + the sum over k < taps of
  // w[(o / 4 * taps + k) * 4 + o % 4] * x[offsets[k] + p],
  // for o < 4 quads and p < n. Reads x and writes out in whole vectors, and so
  // also beyond n.
  void (*apply)(int64_t n, int64_t taps, const int64_t* offsets, const float* x,
                int64_t quads, const float* w, const float* bias, float* out,
                int64_t out_row);

  // sums[(o * taps + k) * lanes ...] += the sum over samples s < samples and p
  // < n of dy[o * dy_plane + s * dy_sample + p] *
  //           x[offsets[k] + s * x_sample + p],
  // for o < 4 quads. Each lane sums its own part of p. taps must be a multiple
  // of 3. dy must be 0 beyond n, since whole vectors are read.
  void (*gather)(int64_t n, int64_t samples, int64_t taps,
                 const int64_t* offsets, const float* x, int64_t x_sample,
                 int64_t quads, const float* dy, int64_t dy_plane,
                 int64_t dy_sample, float* sums);

  // y[r * y_row + c] = x[r * x_row + c] for c < n and r < rows.
  void (*copy_rows)(int64_t rows, int64_t n, const float* x, int64_t x_row,
                    float* y, int64_t y_row);
};

// Runs on any processor.
const Correlations& PlainCorrelations();
// Needs AVX2 and FMA. Null where the compiler can't build it.
const Correlations* Avx2Correlations();
// The fastest one that this processor supports.
const Correlations& BestCorrelations();

}  // namespace tributary
