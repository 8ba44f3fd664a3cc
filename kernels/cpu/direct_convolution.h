#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/correlation.h"
#include "kernels/window.h"

namespace tributary {

// Convolution with stride 1 without columns (im2col): planes are copied between
// zeros, all rows with one pitch, so that what a filter's tap sees of a plane
// is the plane itself, shifted. Outputs then are sums of shifted planes, all
// rows of a plane in one run; what is computed behind a row's end is thrown
// away. Sums are taken in an order that follows from the convolution alone,
// gradients of weights in one that follows from the number of rows too.
class DirectConvolution {
 public:
  // Whether this way is the faster one: one group, stride 1, enough of a plane
  // left beside its padding, and a sample's planes fit in a core's own cache.
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
  // Planes between zeros: element (r, c) of a plane stands at
  // (top + r) * pitch_ + left + c.
  struct Padded {
    int64_t planes = 0;  // of a sample; those behind `used` stay 0
    int64_t used = 0;
    int64_t height = 0, width = 0;  // of what is copied
    int64_t top = 0, left = 0;
    int64_t size = 0;  // floats of a plane, with room for whole vectors
  };

  int64_t taps() const { return c_.filter_size(); }
  Padded MakePadded(int64_t planes, int64_t used, int64_t height, int64_t width,
                    int64_t top, int64_t left) const;
  // Where the taps of a filter over padded planes begin; a sample's planes
  // stand `stride` apart. Flipped: from the last tap to the first.
  std::vector<int64_t> Offsets(const Padded& padded, int64_t stride,
                               bool flipped) const;
  void Pad(const Padded& padded, int64_t samples, int64_t tile, const float* x,
           float* to) const;
  // Floats of the planes of one output of all filters.
  int64_t OutRow(int64_t height) const;
  void PackForward(const float* weight, float* packed) const;
  void PackBackward(const float* weight, float* packed) const;
  void AddWeightGradient(const float* sums, float beta, float* d_weight) const;

  const Convolution c_;
  const int64_t rows_;
  const Correlations& correlations_;
  int64_t pitch_ = 0;
  int64_t samples_ = 1;  // of a tile of the backward pass
  int64_t padded_taps_ = 0;
  Padded x_, dy_;
};

}  // namespace tributary
