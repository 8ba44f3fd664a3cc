// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cpu/correlation.h"

// The loops behind Correlations, for the instruction set of the including file.
// That file must not use inline functions of other headers: the linker could
// choose its copy, built for this instruction set, for the whole program.

#if defined(__clang__)
#define TRIBUTARY_UNROLL _Pragma("unroll")
#else
#define TRIBUTARY_UNROLL _Pragma("GCC unroll 16")
#endif

namespace tributary {
namespace {

#if defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = kVectorBytes / sizeof(float);
typedef float Vector
    __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

// Outputs and vectors of a tile: 4 x 3 sums, 3 vectors of x and one weight fill
// the 16 vector registers.
constexpr int kQuad = 4;
constexpr int kVectors = 3;

template <int kCount>
inline __attribute__((always_inline)) void ApplyTile(
    int64_t taps, const int64_t* offsets, const float* x, const float* w,
    const float* bias, float* out, int64_t out_row) {
  Vector sum[kQuad][kCount];
  TRIBUTARY_UNROLL
  for (int o = 0; o < kQuad; ++o) {
    TRIBUTARY_UNROLL
    for (int v = 0; v < kCount; ++v) sum[o][v] = Vector{} + bias[o];
  }
  for (int64_t k = 0; k < taps; ++k, w += kQuad) {
    const float* at = x + offsets[k];
    Vector in[kCount];
    TRIBUTARY_UNROLL
    for (int v = 0; v < kCount; ++v) {
      in[v] = *reinterpret_cast<const Vector*>(at + v * kLanes);
    }
    TRIBUTARY_UNROLL
    for (int o = 0; o < kQuad; ++o) {
      TRIBUTARY_UNROLL
      for (int v = 0; v < kCount; ++v) sum[o][v] += w[o] * in[v];
    }
  }
  TRIBUTARY_UNROLL
  for (int o = 0; o < kQuad; ++o) {
    TRIBUTARY_UNROLL
    for (int v = 0; v < kCount; ++v) {
      *reinterpret_cast<Vector*>(out + o * out_row + v * kLanes) = sum[o][v];
    }
  }
}

template <int kCount>
inline __attribute__((always_inline)) void ApplyTiles(
    int64_t taps, const int64_t* offsets, const float* x, int64_t quads,
    const float* w, const float* bias, float* out, int64_t out_row) {
  for (int64_t q = 0; q < quads; ++q) {
    ApplyTile<kCount>(taps, offsets, x, w + q * taps * kQuad, bias + q * kQuad,
                      out + q * kQuad * out_row, out_row);
  }
}

// A tile of x stays in the L1 cache while all filters pass over it.
void Apply(int64_t n, int64_t taps, const int64_t* offsets, const float* x,
           int64_t quads, const float* w, const float* bias, float* out,
           int64_t out_row) {
  int64_t p = 0;
  for (; p + (kVectors - 1) * kLanes < n; p += kVectors * kLanes) {
    ApplyTiles<3>(taps, offsets, x + p, quads, w, bias, out + p, out_row);
  }
  if (p + kLanes < n) {
    ApplyTiles<2>(taps, offsets, x + p, quads, w, bias, out + p, out_row);
  } else if (p < n) {
    ApplyTiles<1>(taps, offsets, x + p, quads, w, bias, out + p, out_row);
  }
}

inline __attribute__((always_inline)) void GatherTile(
    int64_t n, int64_t samples, int64_t taps, const int64_t* offsets,
    const float* x, int64_t x_sample, const float* dy, int64_t dy_plane,
    int64_t dy_sample, float* sums) {
  Vector sum[kQuad][kVectors] = {};
  for (int64_t s = 0; s < samples; ++s) {
    const float* from[kVectors];
    TRIBUTARY_UNROLL
    for (int v = 0; v < kVectors; ++v) from[v] = x + offsets[v] + s * x_sample;
    const float* upstream = dy + s * dy_sample;
    for (int64_t p = 0; p < n; p += kLanes) {
      Vector in[kVectors];
      TRIBUTARY_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        in[v] = *reinterpret_cast<const Vector*>(from[v] + p);
      }
      TRIBUTARY_UNROLL
      for (int o = 0; o < kQuad; ++o) {
        const Vector d =
            *reinterpret_cast<const Vector*>(upstream + o * dy_plane + p);
        TRIBUTARY_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[o][v] += d * in[v];
      }
    }
  }
  TRIBUTARY_UNROLL
  for (int o = 0; o < kQuad; ++o) {
    TRIBUTARY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Vector*>(sums + (o * taps + v) * kLanes) += sum[o][v];
    }
  }
}

void Gather(int64_t n, int64_t samples, int64_t taps, const int64_t* offsets,
            const float* x, int64_t x_sample, int64_t quads, const float* dy,
            int64_t dy_plane, int64_t dy_sample, float* sums) {
  for (int64_t q = 0; q < quads; ++q) {
    for (int64_t k = 0; k < taps; k += kVectors) {
      GatherTile(n, samples, taps, offsets + k, x, x_sample,
                 dy + q * kQuad * dy_plane, dy_plane, dy_sample,
                 sums + (q * kQuad * taps + k) * kLanes);
    }
  }
}

template <int kCount>
inline __attribute__((always_inline)) void CopyRun(const float* x, float* y) {
  std::memcpy(y, x, kCount * sizeof(float));
}

void CopyRows(int64_t rows, int64_t n, const float* x, int64_t x_row, float* y,
              int64_t y_row) {
  for (int64_t r = 0; r < rows; ++r, x += x_row, y += y_row) {
    if (n >= 8) {  // the last run may overlap the previous one
      for (int64_t c = 0; c + 8 <= n; c += 8) CopyRun<8>(x + c, y + c);
      CopyRun<8>(x + n - 8, y + n - 8);
    } else if (n >= 4) {
      CopyRun<4>(x, y);
      CopyRun<4>(x + n - 4, y + n - 4);
    } else {
      for (int64_t c = 0; c < n; ++c) y[c] = x[c];
    }
  }
}

constexpr Correlations kCorrelations = {kLanes, Apply, Gather, CopyRows};

}  // namespace
}  // namespace tributary
