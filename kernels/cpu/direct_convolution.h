// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/correlation.h"
#include "kernels/window.h"

namespace tributary {

// Convolution with stride 1 without im2col. Planes are copied with zeros around
// them and one pitch for all rows, so that each filter tap reads the same plane
// at a shifted offset. Each output plane is then a sum of shifted planes,
// computed in one run over all its rows; values beyond the end of a row are
// discarded. The order of sums depends only on the convolution and, for weight
// gradients, on the number of rows.
class DirectConvolution {
 public:
  // True when direct convolution is faster than im2col: one group, stride 1, a
  // plane that is large compared to its padding, and a sample's planes that fit
  // in a core's own cache.
  static bool Takes(const Convolution& c);

  DirectConvolution(const Convolution& c, int64_t rows,
                    const Correlations& correlations = BestCorrelations());

  int64_t scratch_size() const;  // floats

  // As TiledConvolution (convolution_tiles.h).
  void Forward(const float* x, const float* weight, const float* bias, float* y,
               float* scratch) const;
  void Backward(const float* x, const float* weight, const float* dy, float* dx,
                float beta, float* d_weight, float* scratch) const;

 private:
  // Planes with zeros around them. Element (r, c) of a plane is at index (top +
  // r) * pitch_ + left + c.
  struct Padded {
    int64_t planes = 0;  // of a sample; those from `used` on stay 0
    int64_t used = 0;
    int64_t height = 0, width = 0;  // of the planes that are copied
    int64_t top = 0, left = 0;
    int64_t size = 0;  // floats of a plane, padded for whole vectors
  };

  int64_t taps() const { return c_.filter_size(); }
  Padded MakePadded(int64_t planes, int64_t used, int64_t height, int64_t width,
                    int64_t top, int64_t left) const;
  // The offset of each filter tap into padded planes that are `stride` apart
  // within a sample. With `flipped`, taps run from last to first.
  std::vector<int64_t> Offsets(const Padded& padded, int64_t stride,
                               bool flipped) const;
  void Pad(const Padded& padded, int64_t samples, int64_t tile, const float* x,
           float* to) const;
  // Floats between the output planes of two filters.
  int64_t OutRow(int64_t height) const;
  void PackForward(const float* weight, float* packed) const;
  void PackBackward(const float* weight, float* packed) const;
  void AddWeightGradient(const float* sums, float beta, float* d_weight) const;

  const Convolution c_;
  const int64_t rows_;
  const Correlations& correlations_;
  int64_t pitch_ = 0;
  int64_t samples_ = 1;  // of a backward tile
  int64_t padded_taps_ = 0;
  Padded x_, dy_;
};

}  // namespace tributary
