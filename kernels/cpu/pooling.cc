// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/pooling_math.h"
#include "kernels/scalar_math.h"

namespace tributary {
namespace {

// Adjacent 2 x 2 windows, the usual case, without branches. Computes the
// outputs [first, first + kCount) of a row. base: index of the row's first
// input.
template <int kCount>
TRIBUTARY_INLINE void MaxOfFours(int64_t first, int64_t width, int32_t base,
                                 const float* x, float* y, int32_t* argmax) {
  TRIBUTARY_IVDEP
  for (int64_t c = first; c < first + kCount; ++c) {
    const int32_t at = base + static_cast<int32_t>(2 * c);
    float best = x[2 * c];
    int32_t where = at;
    // TakesMax written as single comparisons, without which the loop does not
    // vectorize. best == best is false if the maximum so far is a NaN.
    const auto take = [&](float value, int32_t place) TRIBUTARY_INLINE_LAMBDA {
      value = best == best ? value : best;
      place = best == best ? place : where;
      where = value <= best ? where : place;
      best = value <= best ? best : value;
    };
    take(x[2 * c + 1], at + 1);
    take(x[width + 2 * c], at + static_cast<int32_t>(width));
    take(x[width + 2 * c + 1], at + static_cast<int32_t>(width) + 1);
    y[c] = best;
    argmax[c] = where;
  }
}

// dx: one of the two input rows under a row of outputs; each of its elements
// belongs to one window. at: index of the row's first element. Selects with bit
// masks, because compilers turn selections of floats into unpredictable
// branches.
TRIBUTARY_INLINE void FoursBackward(int64_t n, int32_t at, const float* dy,
                                    const int32_t* argmax, float* dx) {
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < n; ++c) {
    const int32_t place = argmax[c] - at - static_cast<int32_t>(2 * c);
    const uint32_t upstream = FloatBits(dy[c]);
    const uint32_t left = place == 0 ? ~0u : 0u;
    const uint32_t right = place == 1 ? ~0u : 0u;
    dx[2 * c] = BitsFloat(upstream & left);
    dx[2 * c + 1] = BitsFloat(upstream & right);
  }
}

TRIBUTARY_CLONES void MaxOfPlaneByFours(int64_t out_height, int64_t out_width,
                                        int64_t width, const float* x, float* y,
                                        int32_t* argmax) {
  for (int64_t r = 0; r < out_height; ++r) {
    const int64_t in = 2 * r * width, out = r * out_width;
    ForEachRun(out_width,
               [=](int64_t first, auto count) TRIBUTARY_INLINE_LAMBDA {
                 MaxOfFours<count>(first, width, static_cast<int32_t>(in),
                                   x + in, y + out, argmax + out);
               });
  }
}

// Rows and columns outside of all windows get 0.
TRIBUTARY_CLONES void PlaneByFoursBackward(int64_t out_height,
                                           int64_t out_width, int64_t height,
                                           int64_t width, const float* dy,
                                           const int32_t* argmax, float* dx) {
  for (int64_t r = 0; r < out_height; ++r) {
    const int64_t in = 2 * r * width, out = r * out_width;
    for (int64_t row = in; row <= in + width; row += width) {
      FoursBackward(out_width, static_cast<int32_t>(row), dy + out,
                    argmax + out, dx + row);
    }
    for (int64_t c = 2 * out_width; c < width; ++c) {
      dx[in + c] = dx[in + width + c] = 0;
    }
  }
  std::fill(dx + 2 * out_height * width, dx + height * width, 0.0f);
}

bool IsTwoByTwo(const Window& w) {
  return w.kernel_height == 2 && w.kernel_width == 2 && w.stride_height == 2 &&
         w.stride_width == 2 && w.padding_height == 0 && w.padding_width == 0 &&
         w.dilation_height == 1 && w.dilation_width == 1;
}

void MaxOfPlane(const Window& w, const float* x, float* y, int32_t* argmax) {
  const int64_t width = w.out_width();
  if (IsTwoByTwo(w)) {
    return MaxOfPlaneByFours(w.out_height(), width, w.width, x, y, argmax);
  }
  for (int64_t r = 0; r < w.out_height(); ++r) {
    for (int64_t c = 0; c < width; ++c) {
      argmax[c] = WindowMax(w, r, c, x);
      y[c] = x[argmax[c]];
    }
    y += width;
    argmax += width;
  }
}

}  // namespace

void CpuOps::MaxPool(const Window& w, int64_t planes, const float* x, float* y,
                     int32_t* argmax) {
  for (int64_t p = 0; p < planes; ++p) {
    MaxOfPlane(w, x + p * w.in_pixels(), y + p * w.out_pixels(),
               argmax + p * w.out_pixels());
  }
}

void CpuOps::MaxPoolBackward(const Window& w, int64_t planes, const float* dy,
                             const int32_t* argmax, float* dx) {
  const int64_t out = w.out_pixels();
  if (IsTwoByTwo(w)) {
    for (int64_t p = 0; p < planes; ++p) {
      PlaneByFoursBackward(w.out_height(), w.out_width(), w.height, w.width,
                           dy + p * out, argmax + p * out,
                           dx + p * w.in_pixels());
    }
    return;
  }
  std::fill_n(dx, planes * w.in_pixels(), 0.0f);
  for (int64_t p = 0; p < planes; ++p) {
    float* plane = dx + p * w.in_pixels();
    for (int64_t i = p * out; i < (p + 1) * out; ++i) plane[argmax[i]] += dy[i];
  }
}

void CpuOps::AveragePool(const Window& w, bool count_include_pad,
                         int64_t planes, const float* x, float* y) {
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t r = 0; r < w.out_height(); ++r) {
      for (int64_t c = 0; c < w.out_width(); ++c) {
        *y++ = WindowAverage(w, count_include_pad, r, c, x);
      }
    }
    x += w.in_pixels();
  }
}

void CpuOps::AveragePoolBackward(const Window& w, bool count_include_pad,
                                 int64_t planes, const float* dy, float* dx) {
  std::fill_n(dx, planes * w.in_pixels(), 0.0f);
  for (int64_t p = 0; p < planes; ++p) {
    for (int64_t r = 0; r < w.out_height(); ++r) {
      const WindowSpan rows = SpanOfRow(w, r);
      for (int64_t c = 0; c < w.out_width(); ++c) {
        const WindowSpan columns = SpanOfColumn(w, c);
        const float share =
            *dy++ / AverageDivisor(count_include_pad, rows, columns);
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          float* row = dx + i * w.width;
          for (int64_t j = columns.begin; j < columns.end; ++j) row[j] += share;
        }
      }
    }
    dx += w.in_pixels();
  }
}

}  // namespace tributary
