// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/host/cuda_convolution.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// Enough columns for large products, and twice as many where they take little
// memory. A batch of small images takes one tile or a few.
constexpr int64_t kTileColumns = 1 << 16;
constexpr int64_t kTileFloats = 1 << 25;

// Tensor cores want each row to start at a multiple of 16 bytes, which are
// eight bfloat16 elements.
int64_t RoundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Whether a product of n columns keeps the device busy: cuBLAS computes 64 or
// 128 columns at a time, so a few more columns than that waste work.
bool FillsTiles(int64_t n) {
  return n % 64 == 0 || 4 * n >= 3 * RoundUp(n, 128);
}

bool IsDirect(const Window& w) {
  return w.kernel_pixels() == 1 && w.stride_height == 1 &&
         w.stride_width == 1 && w.padding_height == 0 && w.padding_width == 0;
}

}  // namespace

CudaConvolution::CudaConvolution(CudaOps& ops, const Convolution& c,
                                 int64_t rows)
    : ops_(ops),
      stream_(ops.Stream()),
      c_(c),
      rows_(rows),
      rounds_(ops.rounds()) {
  const int64_t width = c.window.out_width(), height = c.window.out_height();
  const int64_t columns = std::clamp(kTileFloats / columns_height(),
                                     kTileColumns, 2 * kTileColumns);
  const int64_t wanted = std::max<int64_t>(1, columns / (width * height));
  most_samples_ = std::min(std::max<int64_t>(1, rows), wanted);
  // Tiles of about equal size.
  const int64_t tiles =
      std::max<int64_t>(1, (rows + most_samples_ - 1) / most_samples_);
  samples_ = std::max<int64_t>(1, (rows + tiles - 1) / tiles);
  out_rows_ = height;
  if (width * height > 2 * kTileColumns) {
    out_rows_ = std::clamp<int64_t>(kTileColumns / width, 1, height);
  }
  batched_ = FillsTiles(out_rows_ * width);
  direct_ = batched_ && IsDirect(c.window);
}

ColumnLayout CudaConvolution::LayoutOf(int64_t samples, int64_t pixels) const {
  const int64_t sample = batched_ ? RoundUp(pixels, 8) : pixels;
  return {RoundUp(samples * sample, 8), sample};
}

// Summing per sample saves a copy of dy, and of x if direct_, but writes the
// filters' gradients once per sample.
bool CudaConvolution::sums_by_sample() const {
  if (rounds_ || !batched_) return false;
  return weight_size() <= (columns_height() + c_.out_channels) * out_rows_ *
                              c_.window.out_width();
}

int64_t CudaConvolution::columns_size() const {
  if (direct_ && sums_by_sample()) return 0;
  const int64_t pixels = out_rows_ * c_.window.out_width();
  return columns_height() * LayoutOf(most_samples_, pixels).row;
}

int64_t CudaConvolution::out_size() const {
  if (sums_by_sample()) return RoundUp(most_samples_ * weight_size(), 8);
  const int64_t pixels = out_rows_ * c_.window.out_width();
  return c_.out_channels * LayoutOf(most_samples_, pixels).row;
}

int64_t CudaConvolution::scratch_size() const {
  int64_t size = columns_size() + out_size();
  // Two bfloat16 weights fit in a float.
  if (rounds_) size += c_.out_channels * RoundUp(c_.filter_size(), 8) / 2;
  return size;
}

template <typename Use>
void CudaConvolution::ForEachTile(Use use) const {
  const int64_t height = c_.window.out_height();
  for (int64_t n = 0; n < rows_; n += samples_) {
    for (int64_t r = 0; r < height; r += out_rows_) {
      Tile tile{{n, std::min(samples_, rows_ - n), r,
                 std::min(out_rows_, height - r)}};
      tile.pixels = tile.out_rows * c_.window.out_width();
      tile.layout = LayoutOf(tile.samples, tile.pixels);
      use(tile);
    }
  }
}

template <typename Element>
CudaConvolution::Matrices<Element> CudaConvolution::Weight(const float* weight,
                                                           float* scratch) {
  const int64_t cols = c_.filter_size();
  if constexpr (std::is_same_v<Element, float>) {
    return {weight, {cols, 0}};
  } else {
    auto* rounded =
        reinterpret_cast<Element*>(scratch + columns_size() + out_size());
    const int64_t row = RoundUp(cols, 8);
    ops_.Record(
        LaunchToBfloat16(stream_, c_.out_channels, cols, weight, row, rounded));
    return {rounded, {row, 0}};
  }
}

template <typename Element>
CudaConvolution::Matrices<Element> CudaConvolution::Columns(const Tile& tile,
                                                            const float* x,
                                                            float* scratch) {
  if constexpr (std::is_same_v<Element, float>) {
    if (direct_) {
      return {x + InputAt(tile), {c_.window.in_pixels(), c_.in_size()}};
    }
  }
  auto* columns = reinterpret_cast<Element*>(scratch);
  ops_.Record(LaunchIm2Col(stream_, c_, tile, x, tile.layout, columns));
  return {columns, tile.layout};
}

template <typename Element>
void CudaConvolution::ForwardOf(const float* x, const float* weight,
                                const float* bias, float* y, float* scratch) {
  const Matrices<Element> filter = Weight<Element>(weight, scratch);
  ForEachTile([&](const Tile& tile) {
    const Matrices<Element> columns = Columns<Element>(tile, x, scratch);
    // Per sample into y, or the whole tile into scratch.
    float* out = batched_ ? y + OutputAt(tile) : scratch + columns_size();
    const ColumnLayout to =
        batched_ ? ColumnLayout{c_.window.out_pixels(), c_.out_size()}
                 : tile.layout;
    Product p;
    p.m = filters();
    p.n = batched_ ? tile.pixels : tile.columns();
    p.k = c_.filter_size();
    p.row_a = filter.layout.row;
    p.row_b = columns.layout.row;
    p.row_c = to.row;
    p.count = batched_ ? tile.samples : 1;
    p.step_b = columns.layout.sample;
    p.step_c = to.sample;
    for (int64_t g = 0; g < c_.groups; ++g) {
      Multiply(p, filter.data + g * p.m * p.row_a,
               columns.data + g * p.k * p.row_b, out + g * p.m * p.row_c);
    }
    if (batched_ && bias == nullptr) return;
    ops_.Record(LaunchTileOut(stream_, c_, tile, out, to, bias, y));
  });
}

void CudaConvolution::Forward(const float* x, const float* weight,
                              const float* bias, float* y, float* scratch) {
  if (rounds_) return ForwardOf<uint16_t>(x, weight, bias, y, scratch);
  ForwardOf<float>(x, weight, bias, y, scratch);
}

template <typename Element>
void CudaConvolution::DifferentiateWeight(const Tile& tile, const Element* dy,
                                          const Element* columns, float beta,
                                          float* d_weight) {
  Product p;
  p.transpose_b = true;
  p.m = filters();
  p.n = c_.filter_size();
  p.k = tile.columns();
  p.beta = beta;
  p.row_a = p.row_b = tile.layout.row;
  p.row_c = p.n;
  for (int64_t g = 0; g < c_.groups; ++g) {
    Multiply(p, dy + g * p.m * p.row_a, columns + g * p.n * p.row_b,
             d_weight + g * p.m * p.n);
  }
}

void CudaConvolution::DifferentiateWeightBySample(
    const Tile& tile, const float* dy, const Matrices<float>& columns,
    float beta, float* d_weight, float* partial) {
  Product p;
  p.transpose_b = true;
  p.m = filters();
  p.n = c_.filter_size();
  p.k = tile.pixels;
  p.row_a = c_.window.out_pixels();
  p.row_b = columns.layout.row;
  p.row_c = p.n;
  p.count = tile.samples;
  p.step_a = c_.out_size();
  p.step_b = columns.layout.sample;
  p.step_c = weight_size();
  for (int64_t g = 0; g < c_.groups; ++g) {
    Multiply(p, dy + g * p.m * p.row_a, columns.data + g * p.n * p.row_b,
             partial + g * p.m * p.n);
  }
  ops_.Record(LaunchSumSamples(stream_, tile.samples, weight_size(), partial,
                               beta, d_weight));
}

template <typename Element>
void CudaConvolution::DifferentiateInput(const Tile& tile,
                                         const Matrices<Element>& weight,
                                         const Matrices<Element>& dy, float* dx,
                                         float* columns) {
  // Outputs that lie in dy itself can only be multiplied per sample.
  const bool by_sample = direct_ || dy.layout.row != tile.layout.row ||
                         dy.layout.sample != tile.layout.sample;
  const ColumnLayout to =
      direct_ ? ColumnLayout{c_.window.in_pixels(), c_.in_size()} : tile.layout;
  float* out = direct_ ? dx + InputAt(tile) : columns;
  Product p;
  p.transpose_a = true;
  p.m = c_.filter_size();
  p.n = by_sample ? tile.pixels : tile.columns();
  p.k = filters();
  p.row_a = weight.layout.row;
  p.row_b = dy.layout.row;
  p.row_c = to.row;
  p.count = by_sample ? tile.samples : 1;
  p.step_b = dy.layout.sample;
  p.step_c = to.sample;
  for (int64_t g = 0; g < c_.groups; ++g) {
    Multiply(p, weight.data + g * p.k * p.row_a, dy.data + g * p.k * p.row_b,
             out + g * p.m * p.row_c);
  }
  if (direct_) return;
  const bool adds = out_rows_ < c_.window.out_height();
  ops_.Record(LaunchCol2Im(stream_, c_, tile, columns, to, adds, dx));
}

template <typename Element>
void CudaConvolution::BackwardOf(const float* x, const float* weight,
                                 const float* dy, float* dx, float beta,
                                 float* d_weight, float* scratch) {
  const Matrices<Element> filter = Weight<Element>(weight, scratch);
  auto* const out = reinterpret_cast<Element*>(scratch + columns_size());
  auto* const columns = reinterpret_cast<Element*>(scratch);
  ForEachTile([&](const Tile& tile) {
    ops_.Record(LaunchTileIn(stream_, c_, tile, dy, tile.layout, out));
    ops_.Record(LaunchIm2Col(stream_, c_, tile, x, tile.layout, columns));
    DifferentiateWeight<Element>(tile, out, columns, beta, d_weight);
    beta = 1;
    if (dx == nullptr) return;
    DifferentiateInput<Element>(tile, filter, {out, tile.layout}, dx, scratch);
  });
}

void CudaConvolution::Backward(const float* x, const float* weight,
                               const float* dy, float* dx, float beta,
                               float* d_weight, float* scratch) {
  if (rows_ == 0 && beta == 0) ops_.Fill(weight_size(), 0, d_weight);
  // The tiles of one sample overlap in dx.
  if (dx != nullptr && !direct_ && out_rows_ < c_.window.out_height()) {
    ops_.Fill(rows_ * c_.in_size(), 0, dx);
  }
  if (rounds_) {
    return BackwardOf<uint16_t>(x, weight, dy, dx, beta, d_weight, scratch);
  }
  if (!sums_by_sample()) {
    return BackwardOf<float>(x, weight, dy, dx, beta, d_weight, scratch);
  }
  const Matrices<float> filter = Weight<float>(weight, scratch);
  ForEachTile([&](const Tile& tile) {
    const Matrices<float> columns = Columns<float>(tile, x, scratch);
    const Matrices<float> upstream = {dy + OutputAt(tile),
                                      {c_.window.out_pixels(), c_.out_size()}};
    DifferentiateWeightBySample(tile, upstream.data, columns, beta, d_weight,
                                scratch + columns_size());
    beta = 1;
    if (dx == nullptr) return;
    DifferentiateInput<float>(tile, filter, upstream, dx, scratch);
  });
}

}  // namespace tributary
