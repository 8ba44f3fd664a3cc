// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/window.h"

namespace tributary {

// Convolutions and pools.
class ImageOps {
 public:
  virtual ~ImageOps() = default;

  // out[c] = beta out[c] + the sum of x[r, c, :] over rows and pixels. beta is
  // 0 or 1. x: [rows, channels, pixels].
  virtual void ChannelSum(int64_t rows, int64_t channels, int64_t pixels,
                          const float* x, float beta, float* out) = 0;

  // scratch: ConvolutionScratch(c, rows) floats, used only during the call.
  virtual int64_t ConvolutionScratch(const Convolution& c, int64_t rows) = 0;
  // bias may be null.
  virtual void Convolve(const Convolution& c, int64_t rows, const float* x,
                        const float* weight, const float* bias, float* y,
                        float* scratch) = 0;
  // Overwrites dx. d_weight and d_bias become beta times their old value plus
  // the gradient; beta is 0 or 1. Each of the three may be null.
  virtual void ConvolveBackward(const Convolution& c, int64_t rows,
                                const float* x, const float* weight,
                                const float* dy, float* dx, float beta,
                                float* d_weight, float* d_bias,
                                float* scratch) = 0;
  // x: [planes, in_pixels]; y and argmax: [planes, out_pixels]. argmax is the
  // index of the maximum in its plane, the first one of equal values. Dilation
  // must be 1.
  virtual void MaxPool(const Window& w, int64_t planes, const float* x,
                       float* y, int32_t* argmax) = 0;
  virtual void MaxPoolBackward(const Window& w, int64_t planes, const float* dy,
                               const int32_t* argmax, float* dx) = 0;
  // With count_include_pad, padding counts as zeros, otherwise not at all.
  virtual void AveragePool(const Window& w, bool count_include_pad,
                           int64_t planes, const float* x, float* y) = 0;
  virtual void AveragePoolBackward(const Window& w, bool count_include_pad,
                                   int64_t planes, const float* dy,
                                   float* dx) = 0;
};

}  // namespace tributary
