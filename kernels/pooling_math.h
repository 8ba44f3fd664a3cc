// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/window.h"

namespace tributary {

// One output of a pooling window, as PyTorch defines it. Only max pooling takes
// a dilation other than 1.

// True when `value` replaces the maximum so far. Of equal values the first one
// stays. A NaN replaces any number and stays.
TRIBUTARY_HOST_DEVICE inline bool TakesMax(float value, float best) {
  return !(value <= best) && !(best != best);
}

// The inputs under an output's window along one axis: [begin, end) within the
// plane. `padded` is their number including padding.
struct WindowSpan {
  int64_t begin;
  int64_t end;
  int64_t padded;
};

TRIBUTARY_HOST_DEVICE inline WindowSpan SpanOf(int64_t out, int64_t extent,
                                               int64_t kernel, int64_t stride,
                                               int64_t padding) {
  const int64_t begin = out * stride - padding;
  const int64_t limit = extent + padding;
  const int64_t end = begin + kernel < limit ? begin + kernel : limit;
  return {begin > 0 ? begin : 0, end < extent ? end : extent, end - begin};
}
TRIBUTARY_HOST_DEVICE inline WindowSpan SpanOfRow(const Window& w, int64_t r) {
  return SpanOf(r, w.height, w.kernel_height, w.stride_height,
                w.padding_height);
}
TRIBUTARY_HOST_DEVICE inline WindowSpan SpanOfColumn(const Window& w,
                                                     int64_t c) {
  return SpanOf(c, w.width, w.kernel_width, w.stride_width, w.padding_width);
}

// The index in plane x of the maximum under the window of output (r, c).
// Padding is never the maximum.
TRIBUTARY_HOST_DEVICE inline int32_t WindowMax(const Window& w, int64_t r,
                                               int64_t c, const float* x) {
  int64_t where = -1;
  float best = 0;
  for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
    const int64_t i =
        r * w.stride_height - w.padding_height + kh * w.dilation_height;
    if (i < 0 || i >= w.height) continue;
    for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
      const int64_t j =
          c * w.stride_width - w.padding_width + kw * w.dilation_width;
      if (j < 0 || j >= w.width) continue;
      const float value = x[i * w.width + j];
      if (where < 0 || TakesMax(value, best)) {
        best = value;
        where = i * w.width + j;
      }
    }
  }
  return static_cast<int32_t>(where);
}

TRIBUTARY_HOST_DEVICE inline float AverageDivisor(bool count_include_pad,
                                                  const WindowSpan& rows,
                                                  const WindowSpan& columns) {
  return static_cast<float>(count_include_pad
                                ? rows.padded * columns.padded
                                : (rows.end - rows.begin) *
                                      (columns.end - columns.begin));
}

TRIBUTARY_HOST_DEVICE inline float WindowAverage(const Window& w,
                                                 bool count_include_pad,
                                                 int64_t r, int64_t c,
                                                 const float* x) {
  const WindowSpan rows = SpanOfRow(w, r);
  const WindowSpan columns = SpanOfColumn(w, c);
  float sum = 0;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      sum += x[i * w.width + j];
    }
  }
  return sum / AverageDivisor(count_include_pad, rows, columns);
}

}  // namespace tributary
