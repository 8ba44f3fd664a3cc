// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/convolution_tiles.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/direct_convolution.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vectorize.h"

namespace tributary {
namespace {

// The outputs [begin, end) of a row for which one column of the filter lies
// within the input's row, and the input index of the first of them.
struct Overlap {
  int64_t begin, end, first;
};

Overlap OverlapOf(const Window& w, int64_t kernel_column) {
  const int64_t shift = kernel_column * w.dilation_width - w.padding_width;
  const int64_t s = w.stride_width, out = w.out_width();
  const int64_t begin = shift >= 0 ? 0 : std::min(out, (-shift + s - 1) / s);
  const int64_t last = w.width - 1 - shift;
  const int64_t end =
      last < 0 ? begin : std::max(begin, std::min(out, last / s + 1));
  return {begin, end, begin * s + shift};
}

TRIBUTARY_CLONES void CopyStrided(int64_t n, int64_t stride, const float* x,
                                  float* y) {
  if (stride == 1) {
    TRIBUTARY_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
}

TRIBUTARY_CLONES void AddStrided(int64_t n, int64_t stride, const float* x,
                                 float* y) {
  if (stride == 1) {
    TRIBUTARY_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] += x[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i * stride] += x[i];
}

TRIBUTARY_CLONES void CopyPlus(int64_t n, const float* x, float plus,
                               float* y) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + plus;
}

TRIBUTARY_CLONES double PlaneSum(int64_t n, const float* x) {
  return LaneSum(n, [x](int64_t i) { return double{x[i]}; });
}

// Calls use(row of the matrix of columns, channel, kernel row, overlap of the
// kernel column) for every filter tap.
template <typename Use>
void ForEachFilterPoint(const Convolution& c, Use use) {
  const Window& w = c.window;
  for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
    const Overlap overlap = OverlapOf(w, kw);
    for (int64_t channel = 0; channel < c.in_channels; ++channel) {
      for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
        use((channel * w.kernel_height + kh) * w.kernel_width + kw, channel, kh,
            overlap);
      }
    }
  }
}

// The Device of TiledConvolution for the CPU.
class CpuConvolution {
 public:
  explicit CpuConvolution(ProductPrecision precision) : precision_(precision) {}

  // The columns and outputs of a tile fit in a core's own cache.
  int64_t tile_columns() const { return 512; }

  void Fill(int64_t n, float value, float* y) { std::fill_n(y, n, value); }
  void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
            float alpha, const float* a, const float* b, float beta, float* c) {
    CpuProduct(precision_, transpose_a, transpose_b, m, n, k, alpha,
               {a, transpose_a ? m : k}, {b, transpose_b ? k : n}, beta, c, n);
  }

  void Im2Col(const Convolution& c, const ConvolutionTile& tile, const float* x,
              float* columns) {
    const Window& w = c.window;
    const int64_t out = w.out_width();
    ForEachFilterPoint(
        c, [&](int64_t row, int64_t channel, int64_t kh, const Overlap& o) {
          float* to = columns + row * tile.columns(c);
          for (int64_t n = 0; n < tile.samples; ++n) {
            const float* plane = x + (tile.first_sample + n) * c.in_size() +
                                 channel * w.in_pixels();
            for (int64_t r = 0; r < tile.out_rows; ++r, to += out) {
              const int64_t from = (tile.first_row + r) * w.stride_height +
                                   kh * w.dilation_height - w.padding_height;
              if (from < 0 || from >= w.height) {
                std::fill_n(to, out, 0.0f);
                continue;
              }
              for (int64_t i = 0; i < o.begin; ++i) to[i] = 0;
              CopyStrided(o.end - o.begin, w.stride_width,
                          plane + from * w.width + o.first, to + o.begin);
              for (int64_t i = o.end; i < out; ++i) to[i] = 0;
            }
          }
        });
  }

  // Adds the terms of an input by kernel column, and within a column by kernel
  // row.
  void Col2Im(const Convolution& c, const ConvolutionTile& tile,
              const float* columns, float* dx) {
    const Window& w = c.window;
    const int64_t out = w.out_width();
    ForEachFilterPoint(
        c, [&](int64_t row, int64_t channel, int64_t kh, const Overlap& o) {
          const float* from = columns + row * tile.columns(c);
          for (int64_t n = 0; n < tile.samples; ++n) {
            float* plane = dx + (tile.first_sample + n) * c.in_size() +
                           channel * w.in_pixels();
            for (int64_t r = 0; r < tile.out_rows; ++r, from += out) {
              const int64_t to = (tile.first_row + r) * w.stride_height +
                                 kh * w.dilation_height - w.padding_height;
              if (to < 0 || to >= w.height) continue;
              AddStrided(o.end - o.begin, w.stride_width, from + o.begin,
                         plane + to * w.width + o.first);
            }
          }
        });
  }

  void TileOut(const Convolution& c, const ConvolutionTile& tile,
               const float* out, const float* bias, float* y) {
    const int64_t n = tile.out_rows * c.window.out_width();
    for (int64_t o = 0; o < c.out_channels; ++o) {
      const float plus = bias == nullptr ? 0.0f : bias[o];
      for (int64_t s = 0; s < tile.samples; ++s) {
        CopyPlus(n, out + (o * tile.samples + s) * n, plus,
                 y + OutAt(c, tile, s, o));
      }
    }
  }

  void TileIn(const Convolution& c, const ConvolutionTile& tile,
              const float* dy, float* out) {
    const int64_t n = tile.out_rows * c.window.out_width();
    for (int64_t o = 0; o < c.out_channels; ++o) {
      for (int64_t s = 0; s < tile.samples; ++s) {
        std::memcpy(out + (o * tile.samples + s) * n, dy + OutAt(c, tile, s, o),
                    n * sizeof(float));
      }
    }
  }

 private:
  static int64_t OutAt(const Convolution& c, const ConvolutionTile& tile,
                       int64_t sample, int64_t channel) {
    return (tile.first_sample + sample) * c.out_size() +
           channel * c.window.out_pixels() +
           tile.first_row * c.window.out_width();
  }

  const ProductPrecision precision_;
};

}  // namespace

// Direct convolution has no step that rounds operands, so it is float32 only.
bool CpuOps::TakesDirectly(const Convolution& c) const {
  return precision_ == ProductPrecision::kFloat32 &&
         DirectConvolution::Takes(c);
}

int64_t CpuOps::ConvolutionScratch(const Convolution& c, int64_t rows) {
  if (TakesDirectly(c)) {
    return DirectConvolution(c, rows).scratch_size();
  }
  CpuConvolution device(precision_);
  return TiledConvolution(device, c, rows).scratch_size();
}

void CpuOps::Convolve(const Convolution& c, int64_t rows, const float* x,
                      const float* weight, const float* bias, float* y,
                      float* scratch) {
  if (TakesDirectly(c)) {
    return DirectConvolution(c, rows).Forward(x, weight, bias, y, scratch);
  }
  CpuConvolution device(precision_);
  TiledConvolution(device, c, rows).Forward(x, weight, bias, y, scratch);
}

void CpuOps::ConvolveBackward(const Convolution& c, int64_t rows,
                              const float* x, const float* weight,
                              const float* dy, float* dx, float beta,
                              float* d_weight, float* d_bias, float* scratch) {
  if (TakesDirectly(c)) {
    DirectConvolution(c, rows).Backward(x, weight, dy, dx, beta, d_weight,
                                        scratch);
  } else {
    CpuConvolution device(precision_);
    TiledConvolution(device, c, rows)
        .Backward(x, weight, dy, dx, beta, d_weight, scratch);
  }
  if (d_bias != nullptr) {
    ChannelSum(rows, c.out_channels, c.window.out_pixels(), dy, beta, d_bias);
  }
}

void CpuOps::ChannelSum(int64_t rows, int64_t channels, int64_t pixels,
                        const float* x, float beta, float* out) {
  for (int64_t c = 0; c < channels; ++c) {
    double sum = beta == 0 ? 0 : out[c];
    for (int64_t r = 0; r < rows; ++r) {
      sum += PlaneSum(pixels, x + (r * channels + c) * pixels);
    }
    out[c] = static_cast<float>(sum);
  }
}

}  // namespace tributary
