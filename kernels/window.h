// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace tributary {

// A window that slides over planes of height x width, with PyTorch's
// conventions: output (r, c) covers the inputs (r stride - padding + k
// dilation, ...).
struct Window {
  int64_t height = 0;
  int64_t width = 0;
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t padding_height = 0;
  int64_t padding_width = 0;
  int64_t dilation_height = 1;
  int64_t dilation_width = 1;

  // Below 1 when the window does not fit.
  TRIBUTARY_HOST_DEVICE int64_t out_height() const {
    return (height + 2 * padding_height -
            dilation_height * (kernel_height - 1) - 1 + stride_height) /
           stride_height;
  }
  TRIBUTARY_HOST_DEVICE int64_t out_width() const {
    return (width + 2 * padding_width - dilation_width * (kernel_width - 1) -
            1 + stride_width) /
           stride_width;
  }
  TRIBUTARY_HOST_DEVICE int64_t in_pixels() const { return height * width; }
  TRIBUTARY_HOST_DEVICE int64_t out_pixels() const {
    return out_height() * out_width();
  }
  TRIBUTARY_HOST_DEVICE int64_t kernel_pixels() const {
    return kernel_height * kernel_width;
  }
};

// y[n, o] = bias[o] + sum over the group's channels c of w[o, c] * x[n, c].
// x: [rows, in_channels, height, width],
// w: [out_channels, in_channels / groups, kernel_height, kernel_width],
// y: [rows, out_channels, out_height, out_width].
struct Convolution {
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  int64_t groups = 1;  // divides both channel counts
  Window window;

  // Elements of x and y of one row, and of one filter.
  TRIBUTARY_HOST_DEVICE int64_t in_size() const {
    return in_channels * window.in_pixels();
  }
  TRIBUTARY_HOST_DEVICE int64_t out_size() const {
    return out_channels * window.out_pixels();
  }
  TRIBUTARY_HOST_DEVICE int64_t filter_size() const {
    return in_channels / groups * window.kernel_pixels();
  }
};

// The part of a batch that one matrix product convolves: output rows
// [first_row, first_row + out_rows) of `samples` samples. The columns are
// ordered by sample, then by row.
struct ConvolutionTile {
  int64_t first_sample = 0;
  int64_t samples = 0;
  int64_t first_row = 0;
  int64_t out_rows = 0;

  TRIBUTARY_HOST_DEVICE int64_t columns(const Convolution& c) const {
    return samples * out_rows * c.window.out_width();
  }
};

}  // namespace tributary
