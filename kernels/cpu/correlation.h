#pragma once

#include <cstdint>

namespace tributary {

// The inner loops of direct convolution: sums of planes that stand shifted
// against each other. A compiler makes no registers of such sums by itself, so
// they are written with vectors and built once for each instruction set.
// Whether products and sums are fused, and so the last bits, depends on the
// machine, as with BLAS.
struct Correlations {
  // Floats of a vector.
  int64_t lanes;

  // out[o * out_row + p] = bias[o] + the sum over k < taps of
  // w[(o / 4 * taps + k) * 4 + o % 4] * x[offsets[k] + p],
  // for o < 4 quads and p < n. Reads x and writes out as far as whole vectors.
  void (*apply)(int64_t n, int64_t taps, const int64_t* offsets, const float* x,
                int64_t quads, const float* w, const float* bias, float* out,
                int64_t out_row);

  // sums[(o * taps + k) * lanes ...] += the sum over samples s < samples and
  // p < n of dy[o * dy_plane + s * dy_sample + p] *
  //           x[offsets[k] + s * x_sample + p],
  // each lane its own part of p, for o < 4 quads; taps is a multiple of 3.
  // Whole vectors are read, so dy is 0 behind n.
  void (*gather)(int64_t n, int64_t samples, int64_t taps,
                 const int64_t* offsets, const float* x, int64_t x_sample,
                 int64_t quads, const float* dy, int64_t dy_plane,
                 int64_t dy_sample, float* sums);

  // y[r * y_row + c] = x[r * x_row + c], c < n, r < rows.
  void (*copy_rows)(int64_t rows, int64_t n, const float* x, int64_t x_row,
                    float* y, int64_t y_row);
};

// For any processor.
const Correlations& PlainCorrelations();
// With AVX2 and FMA; null where the compiler can't build them. Only for
// processors that have both.
const Correlations* Avx2Correlations();
// The fastest that this processor runs.
const Correlations& BestCorrelations();

}  // namespace tributary
