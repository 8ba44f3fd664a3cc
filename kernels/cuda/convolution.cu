// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// Element i of the matrix of columns: its filter tap and its input, which is
// padding unless `inside`.
struct ColumnElement {
  int64_t row;  // of the matrix
  int64_t sample, channel, y, x;
  bool inside;
};

__device__ ColumnElement ElementAt(const Convolution& c,
                                   const ConvolutionTile& tile, int64_t i) {
  const Window& w = c.window;
  const int64_t columns = tile.columns(c);
  const int64_t width = w.out_width();
  ColumnElement e;
  e.row = i / columns;
  const int64_t column = i % columns;
  const int64_t out_x = column % width;
  const int64_t out_y = tile.first_row + column / width % tile.out_rows;
  e.sample = tile.first_sample + column / (width * tile.out_rows);
  e.channel = e.row / w.kernel_pixels();
  e.y = out_y * w.stride_height - w.padding_height +
        e.row / w.kernel_width % w.kernel_height * w.dilation_height;
  e.x = out_x * w.stride_width - w.padding_width +
        e.row % w.kernel_width * w.dilation_width;
  e.inside = e.y >= 0 && e.y < w.height && e.x >= 0 && e.x < w.width;
  return e;
}

// One thread per element of the matrix.
__global__ void Im2ColKernel(int64_t n, Convolution c, ConvolutionTile tile,
                             const float* x, float* columns) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const ColumnElement e = ElementAt(c, tile, i);
    columns[i] =
        e.inside ? x[e.sample * c.in_size() + e.channel * c.window.in_pixels() +
                     e.y * c.window.width + e.x]
                 : 0.0f;
  }
}

// The output along one axis for which kernel tap `k` covers input `at`, or -1.
__device__ int64_t OutputOf(int64_t at, int64_t k, int64_t padding,
                            int64_t dilation, int64_t stride, int64_t extent) {
  const int64_t shifted = at + padding - k * dilation;
  if (shifted < 0 || shifted % stride != 0) return -1;
  return shifted / stride < extent ? shifted / stride : -1;
}

// One thread per input element sums the column elements of that input, by
// kernel row and then kernel column, so that no atomics are needed.
__global__ void Col2ImKernel(int64_t n, Convolution c, ConvolutionTile tile,
                             const float* columns, float* dx) {
  const Window& w = c.window;
  const int64_t width = w.out_width(), height = w.out_height();
  const int64_t row_size = tile.columns(c);
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const int64_t x = i % w.width;
    const int64_t y = i / w.width % w.height;
    const int64_t channel = i / w.in_pixels() % c.in_channels;
    const int64_t sample = i / c.in_size();
    float* to = dx + (tile.first_sample * c.in_size() + i);
    float sum = *to;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const int64_t out_y = OutputOf(y, kh, w.padding_height, w.dilation_height,
                                     w.stride_height, height);
      const int64_t r = out_y - tile.first_row;
      if (out_y < 0 || r < 0 || r >= tile.out_rows) continue;
      for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
        const int64_t out_x = OutputOf(x, kw, w.padding_width, w.dilation_width,
                                       w.stride_width, width);
        if (out_x < 0) continue;
        const int64_t row =
            (channel * w.kernel_height + kh) * w.kernel_width + kw;
        sum += columns[row * row_size + (sample * tile.out_rows + r) * width +
                       out_x];
      }
    }
    *to = sum;
  }
}

// The index in y of element i of a tile of outputs [channels, columns].
__device__ int64_t OutputAt(const Convolution& c, const ConvolutionTile& tile,
                            int64_t i) {
  const int64_t columns = tile.columns(c);
  const int64_t part = tile.out_rows * c.window.out_width();
  const int64_t column = i % columns;
  return (tile.first_sample + column / part) * c.out_size() +
         i / columns * c.window.out_pixels() +
         tile.first_row * c.window.out_width() + column % part;
}

__global__ void TileOutKernel(int64_t n, Convolution c, ConvolutionTile tile,
                              const float* out, const float* bias, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const float plus = bias == nullptr ? 0.0f : bias[i / tile.columns(c)];
    y[OutputAt(c, tile, i)] = out[i] + plus;
  }
}

__global__ void TileInKernel(int64_t n, Convolution c, ConvolutionTile tile,
                             const float* dy, float* out) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    out[i] = dy[OutputAt(c, tile, i)];
  }
}

// One block per channel. Its warps take the rows in turn; their sums are added
// in warp order.
__global__ void ChannelSumKernel(int64_t rows, int64_t channels, int64_t pixels,
                                 const float* x, float beta, float* out) {
  __shared__ double sums[kWarpsPerBlock];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  for (int64_t c = blockIdx.x; c < channels; c += gridDim.x) {
    double sum = 0;
    for (int64_t r = warp; r < rows; r += kWarpsPerBlock) {
      const float* plane = x + (r * channels + c) * pixels;
      sum += WarpSum(pixels, [=](int64_t i) { return double{plane[i]}; });
    }
    if (Lane() == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      double total = beta == 0 ? 0 : out[c];
      for (int w = 0; w < kWarpsPerBlock; ++w) total += sums[w];
      out[c] = static_cast<float>(total);
    }
    __syncthreads();
  }
}

}  // namespace

DeviceStatus LaunchIm2Col(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* x,
                          float* columns) {
  const int64_t n = c.in_channels * c.window.kernel_pixels() * tile.columns(c);
  if (n == 0) return DeviceStatus();
  Im2ColKernel<<<Blocks(n), kThreads, 0, stream>>>(n, c, tile, x, columns);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchCol2Im(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* columns,
                          float* dx) {
  const int64_t n = tile.samples * c.in_size();
  if (n == 0) return DeviceStatus();
  Col2ImKernel<<<Blocks(n), kThreads, 0, stream>>>(n, c, tile, columns, dx);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchTileOut(cudaStream_t stream, const Convolution& c,
                           const ConvolutionTile& tile, const float* out,
                           const float* bias, float* y) {
  const int64_t n = c.out_channels * tile.columns(c);
  if (n == 0) return DeviceStatus();
  TileOutKernel<<<Blocks(n), kThreads, 0, stream>>>(n, c, tile, out, bias, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchTileIn(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* dy,
                          float* out) {
  const int64_t n = c.out_channels * tile.columns(c);
  if (n == 0) return DeviceStatus();
  TileInKernel<<<Blocks(n), kThreads, 0, stream>>>(n, c, tile, dy, out);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchChannelSum(cudaStream_t stream, int64_t rows,
                              int64_t channels, int64_t pixels, const float* x,
                              float beta, float* out) {
  if (channels == 0) return DeviceStatus();
  const int blocks =
      static_cast<int>(std::min<int64_t>(channels, int64_t{1} << 16));
  ChannelSumKernel<<<blocks, kThreads, 0, stream>>>(rows, channels, pixels, x,
                                                    beta, out);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
