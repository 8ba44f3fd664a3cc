#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/pooling_math.h"

namespace tributary {
namespace {

// Windows of 2 x 2 side by side, the usual ones: a row of outputs, branch-free.
TRIBUTARY_CLONES void MaxOfFours(int64_t out_width, int64_t width, int32_t base,
                                 const float* x, float* y, int32_t* argmax) {
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < out_width; ++c) {
    const int32_t at = base + static_cast<int32_t>(2 * c);
    float best = x[2 * c];
    int32_t where = at;
    const auto take = [&](float value, int32_t place) TRIBUTARY_INLINE_LAMBDA {
      const bool larger = TakesMax(value, best);
      best = larger ? value : best;
      where = larger ? place : where;
    };
    take(x[2 * c + 1], at + 1);
    take(x[width + 2 * c], at + static_cast<int32_t>(width));
    take(x[width + 2 * c + 1], at + static_cast<int32_t>(width) + 1);
    y[c] = best;
    argmax[c] = where;
  }
}

bool IsTwoByTwo(const Window& w) {
  return w.kernel_height == 2 && w.kernel_width == 2 && w.stride_height == 2 &&
         w.stride_width == 2 && w.padding_height == 0 && w.padding_width == 0 &&
         w.dilation_height == 1 && w.dilation_width == 1;
}

void MaxOfPlane(const Window& w, const float* x, float* y, int32_t* argmax) {
  const int64_t width = w.out_width();
  const bool fours = IsTwoByTwo(w);
  for (int64_t r = 0; r < w.out_height(); ++r) {
    if (fours) {
      MaxOfFours(width, w.width, static_cast<int32_t>(2 * r * w.width),
                 x + 2 * r * w.width, y, argmax);
    } else {
      for (int64_t c = 0; c < width; ++c) {
        argmax[c] = WindowMax(w, r, c, x);
        y[c] = x[argmax[c]];
      }
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
