// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/window.h"

namespace tributary {

// Convolution as matrix products (Chellapilla, Puri, Simard 2006). For each
// tile of outputs, "im2col" copies the inputs under the filters into the
// columns of a matrix; the filters times this matrix are the outputs. Tiles
// bound the memory of the matrix. The order of all sums depends only on the
// convolution and the number of rows.
//
// Device provides, besides Fill and Gemm of Ops:
//   tile_columns()                  the preferred number of columns of a tile
//   Im2Col(c, tile, x, columns)     columns: [in_channels * kernel, tile]
//   Col2Im(c, tile, columns, dx)    its transpose; adds to dx
//   TileOut(c, tile, out, bias, y)  y's tile = out [out_channels, tile] + bias
//   TileIn(c, tile, dy, out)        out = dy's tile
template <typename Device>
class TiledConvolution {
 public:
  TiledConvolution(Device& device, const Convolution& c, int64_t rows)
      : device_(device), c_(c), rows_(rows) {
    const int64_t width = c.window.out_width();
    const int64_t height = c.window.out_height();
    const int64_t wanted =
        std::max<int64_t>(1, device.tile_columns() / (width * height));
    samples_ = std::min(std::max<int64_t>(1, rows), wanted);
    out_rows_ = height;
    if (width * height > 2 * device.tile_columns()) {
      out_rows_ = std::clamp<int64_t>(device.tile_columns() / width, 1, height);
    }
  }

  // Floats of scratch memory: the columns of a tile, then its outputs.
  int64_t scratch_size() const {
    return (columns_height() + c_.out_channels) * tile_columns();
  }

  void Forward(const float* x, const float* weight, const float* bias, float* y,
               float* scratch) {
    ForEachTile([&](const ConvolutionTile& tile) {
      const int64_t n = tile.columns(c_);
      float* columns = scratch;
      float* out = scratch + columns_height() * n;
      device_.Im2Col(c_, tile, x, columns);
      for (int64_t g = 0; g < c_.groups; ++g) {
        device_.Gemm(false, false, filters(), n, c_.filter_size(), 1,
                     weight + g * filters() * c_.filter_size(),
                     columns + g * c_.filter_size() * n, 0,
                     out + g * filters() * n);
      }
      device_.TileOut(c_, tile, out, bias, y);
    });
  }

  // Computes all gradients except the bias's. dx may be null. d_weight becomes
  // beta d_weight + its gradient.
  void Backward(const float* x, const float* weight, const float* dy, float* dx,
                float beta, float* d_weight, float* scratch) {
    if (rows_ == 0 && beta == 0) {
      device_.Fill(c_.out_channels * c_.filter_size(), 0, d_weight);
    }
    if (dx != nullptr) device_.Fill(rows_ * c_.in_size(), 0, dx);
    ForEachTile([&](const ConvolutionTile& tile) {
      const int64_t n = tile.columns(c_);
      float* columns = scratch;
      float* out = scratch + columns_height() * n;
      device_.TileIn(c_, tile, dy, out);
      device_.Im2Col(c_, tile, x, columns);
      for (int64_t g = 0; g < c_.groups; ++g) {
        device_.Gemm(false, true, filters(), c_.filter_size(), n, 1,
                     out + g * filters() * n,
                     columns + g * c_.filter_size() * n, beta,
                     d_weight + g * filters() * c_.filter_size());
      }
      beta = 1;
      if (dx == nullptr) return;
      for (int64_t g = 0; g < c_.groups; ++g) {
        device_.Gemm(true, false, c_.filter_size(), n, filters(), 1,
                     weight + g * filters() * c_.filter_size(),
                     out + g * filters() * n, 0,
                     columns + g * c_.filter_size() * n);
      }
      device_.Col2Im(c_, tile, columns, dx);
    });
  }

 private:
  int64_t filters() const { return c_.out_channels / c_.groups; }
  int64_t columns_height() const {
    return c_.in_channels * c_.window.kernel_pixels();
  }
  int64_t tile_columns() const {
    return samples_ * out_rows_ * c_.window.out_width();
  }

  template <typename Use>
  void ForEachTile(Use use) const {
    const int64_t height = c_.window.out_height();
    for (int64_t n = 0; n < rows_; n += samples_) {
      for (int64_t r = 0; r < height; r += out_rows_) {
        use({n, std::min(samples_, rows_ - n), r,
             std::min(out_rows_, height - r)});
      }
    }
  }

  Device& device_;
  const Convolution c_;
  const int64_t rows_;
  int64_t samples_ = 1;  // per tile; above 1 only with all output rows
  int64_t out_rows_ = 1;
};

}  // namespace tributary
