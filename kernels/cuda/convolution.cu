// SPDX-License-Identifier: Apache-2.0
// The copies around the products of a convolution. A block's z index is a
// sample, its y index a channel, and its threads go along the pixels of a
// plane. So no index needs a 64-bit division, and neighboring threads access
// neighboring elements.
#include <limits>

#include "kernels/cuda/bfloat16.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/model_launchers.h"

namespace tributary {
namespace {

// The window and the tile in 32 bits, which CheckExtents allows.
struct Plane {
  int height, width, kernel_height, kernel_width;
  int stride_height, stride_width, padding_height, padding_width;
  int dilation_height, dilation_width;
  int out_height, out_width;
  int first_row, out_rows;

  __host__ __device__ int out_pixels() const { return out_rows * out_width; }
};

Plane PlaneOf(const Window& w, const ConvolutionTile& tile) {
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  return {narrow(w.height),          narrow(w.width),
          narrow(w.kernel_height),   narrow(w.kernel_width),
          narrow(w.stride_height),   narrow(w.stride_width),
          narrow(w.padding_height),  narrow(w.padding_width),
          narrow(w.dilation_height), narrow(w.dilation_width),
          narrow(w.out_height()),    narrow(w.out_width()),
          narrow(tile.first_row),    narrow(tile.out_rows)};
}

DeviceStatus CheckExtents(const Window& w) {
  // Coordinates lie in the padded plane.
  const int64_t height = w.height + 2 * w.padding_height;
  const int64_t width = w.width + 2 * w.padding_width;
  const int64_t largest =
      std::max({w.in_pixels(), w.out_pixels(), height, width, w.stride_height,
                w.stride_width, w.dilation_height, w.dilation_width});
  if (largest <= std::numeric_limits<int>::max() / 2) return DeviceStatus();
  return DeviceStatus::Error("convolution: an image exceeds 2^30 pixels");
}

// A tile of planes [samples, channels].
struct Planes {
  int64_t samples, channels;
};

// Blocks of one plane's pixels by channels by samples. Small planes take small
// blocks.
struct Grid {
  dim3 blocks, threads;
};
Grid GridOf(int64_t pixels, const Planes& planes) {
  const auto most = [](int64_t n) {
    return static_cast<unsigned>(std::min<int64_t>(n, 65535));
  };
  const unsigned threads = pixels > 128 ? kThreads : pixels > 64 ? 128 : 64;
  const auto along = static_cast<unsigned>((pixels + threads - 1) / threads);
  const unsigned channels = most(planes.channels);
  // Many small planes take several samples per block.
  const int64_t samples = (1 << 15) / (int64_t{along} * channels);
  return {dim3(along, channels,
               most(std::clamp<int64_t>(samples, 1, planes.samples))),
          dim3(threads)};
}

// Calls use(sample, channel) for every plane of the block.
template <typename Use>
__device__ void ForEachPlane(const Planes& planes, Use use) {
  for (int64_t s = blockIdx.z; s < planes.samples; s += gridDim.z) {
    for (int64_t c = blockIdx.y; c < planes.channels; c += gridDim.y) {
      use(s, c);
    }
  }
}

__device__ int Pixel() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

__device__ void Store(float x, float* to) { *to = x; }
__device__ void Store(float x, uint16_t* to) { *to = Bfloat16Bits(x); }

// One thread per output pixel and input channel writes the inputs under all
// filter taps. kSide: the side of a square filter, or 0 for any filter.
template <int kSide, typename Element>
__global__ void Im2ColKernel(Plane w, Planes planes, const float* x,
                             ColumnLayout to, Element* columns) {
  const int kernel_height = kSide > 0 ? kSide : w.kernel_height;
  const int kernel_width = kSide > 0 ? kSide : w.kernel_width;
  const int p = Pixel();
  if (p >= to.sample) return;
  const bool is_pixel = p < w.out_pixels();  // else padding of the layout
  const int out_y = p / w.out_width;
  const int first_y =
      (w.first_row + out_y) * w.stride_height - w.padding_height;
  const int first_x =
      (p - out_y * w.out_width) * w.stride_width - w.padding_width;
  ForEachPlane(planes, [&](int64_t s, int64_t c) {
    const float* plane =
        x + (s * planes.channels + c) * (int64_t{w.height} * w.width);
    Element* column =
        columns + c * kernel_height * kernel_width * to.row + s * to.sample + p;
#pragma unroll
    for (int kh = 0; kh < kernel_height; ++kh) {
      const int at_y = first_y + kh * w.dilation_height;
      const bool row_inside = is_pixel && at_y >= 0 && at_y < w.height;
#pragma unroll
      for (int kw = 0; kw < kernel_width; ++kw) {
        const int at_x = first_x + kw * w.dilation_width;
        const bool inside = row_inside && at_x >= 0 && at_x < w.width;
        Store(inside ? plane[at_y * w.width + at_x] : 0.0f, column);
        column += to.row;
      }
    }
  });
}

// Returns the output along one axis for which a filter tap covers an input, or
// a negative number if there is none. shifted: the input's place in the padded
// image, less that of the tap.
template <bool kUnitStride>
__device__ int OutputOf(int shifted, int stride, int extent) {
  if (shifted < 0) return -1;
  if (kUnitStride) return shifted < extent ? shifted : -1;
  const int at = shifted / stride;
  return at * stride == shifted && at < extent ? at : -1;
}

// One thread per input element sums the column elements of that input, by
// kernel row and then kernel column, so that no atomics are needed. It adds to
// dx or overwrites it.
template <int kSide, bool kUnitStride>
__global__ void Col2ImKernel(Plane w, Planes planes, const float* columns,
                             ColumnLayout from, bool adds, float* dx) {
  const int kernel_height = kSide > 0 ? kSide : w.kernel_height;
  const int kernel_width = kSide > 0 ? kSide : w.kernel_width;
  const int p = Pixel();
  if (p >= w.height * w.width) return;
  const int y = p / w.width, x = p - y * w.width;
  ForEachPlane(planes, [&](int64_t s, int64_t c) {
    float* to =
        dx + (s * planes.channels + c) * (int64_t{w.height} * w.width) + p;
    const float* row =
        columns + c * kernel_height * kernel_width * from.row + s * from.sample;
    float sum = adds ? *to : 0.0f;
#pragma unroll
    for (int kh = 0; kh < kernel_height; ++kh) {
      const int out_y =
          OutputOf<kUnitStride>(y + w.padding_height - kh * w.dilation_height,
                                w.stride_height, w.out_height);
      const int tile_y = out_y - w.first_row;
      const bool in_tile = out_y >= 0 && tile_y >= 0 && tile_y < w.out_rows;
#pragma unroll
      for (int kw = 0; kw < kernel_width; ++kw) {
        const int out_x =
            OutputOf<kUnitStride>(x + w.padding_width - kw * w.dilation_width,
                                  w.stride_width, w.out_width);
        sum += in_tile && out_x >= 0 ? row[tile_y * w.out_width + out_x] : 0.0f;
        row += from.row;
      }
    }
    *to = sum;
  });
}

// y = out + bias, where y starts at the tile. `out` may be y itself.
__global__ void TileOutKernel(int pixels, Planes planes, const float* out,
                              ColumnLayout from, const float* bias,
                              ColumnLayout to, float* y) {
  const int p = Pixel();
  if (p >= pixels) return;
  ForEachPlane(planes, [&](int64_t s, int64_t c) {
    const float plus = bias == nullptr ? 0.0f : bias[c];
    y[c * to.row + s * to.sample + p] =
        out[c * from.row + s * from.sample + p] + plus;
  });
}

template <typename Element>
__global__ void TileInKernel(int pixels, Planes planes, const float* dy,
                             ColumnLayout from, ColumnLayout to, Element* out) {
  const int p = Pixel();
  if (p >= to.sample) return;
  ForEachPlane(planes, [&](int64_t s, int64_t c) {
    Store(p < pixels ? dy[c * from.row + s * from.sample + p] : 0.0f,
          out + c * to.row + s * to.sample + p);
  });
}

// One thread per element.
__global__ void SumSamplesKernel(int64_t samples, int64_t n, const float* x,
                                 float beta, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    float sum = 0;
#pragma unroll 8
    for (int64_t s = 0; s < samples; ++s) sum += x[s * n + i];
    y[i] = sum + (beta == 0 ? 0.0f : beta * y[i]);
  }
}

template <typename Element>
DeviceStatus Im2Col(cudaStream_t stream, const Convolution& c,
                    const ConvolutionTile& tile, const float* x,
                    const ColumnLayout& to, Element* columns) {
  const Planes planes{tile.samples, c.in_channels};
  if (planes.samples * planes.channels * to.sample == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(c.window); !status.ok()) return status;
  const auto [blocks, threads] = GridOf(to.sample, planes);
  const Plane plane = PlaneOf(c.window, tile);
  const float* first = x + tile.first_sample * c.in_size();
  if (plane.kernel_height == 3 && plane.kernel_width == 3) {
    Im2ColKernel<3>
        <<<blocks, threads, 0, stream>>>(plane, planes, first, to, columns);
  } else {
    Im2ColKernel<0>
        <<<blocks, threads, 0, stream>>>(plane, planes, first, to, columns);
  }
  return CudaStatus(cudaGetLastError());
}

template <int kSide>
void Col2Im(cudaStream_t stream, const Grid& grid, const Plane& plane,
            const Planes& planes, const float* columns,
            const ColumnLayout& from, bool adds, float* dx) {
  if (plane.stride_height == 1 && plane.stride_width == 1) {
    Col2ImKernel<kSide, true><<<grid.blocks, grid.threads, 0, stream>>>(
        plane, planes, columns, from, adds, dx);
  } else {
    Col2ImKernel<kSide, false><<<grid.blocks, grid.threads, 0, stream>>>(
        plane, planes, columns, from, adds, dx);
  }
}

// Where a tile starts in an array of outputs, and how the array is laid out.
int64_t OutputAt(const Convolution& c, const ConvolutionTile& tile) {
  return tile.first_sample * c.out_size() +
         tile.first_row * c.window.out_width();
}
ColumnLayout OutputLayout(const Convolution& c) {
  return {c.window.out_pixels(), c.out_size()};
}

template <typename Element>
DeviceStatus TileIn(cudaStream_t stream, const Convolution& c,
                    const ConvolutionTile& tile, const float* dy,
                    const ColumnLayout& to, Element* out) {
  const Planes planes{tile.samples, c.out_channels};
  if (planes.samples * planes.channels * to.sample == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(c.window); !status.ok()) return status;
  const auto [blocks, threads] = GridOf(to.sample, planes);
  TileInKernel<<<blocks, threads, 0, stream>>>(
      PlaneOf(c.window, tile).out_pixels(), planes, dy + OutputAt(c, tile),
      OutputLayout(c), to, out);
  return CudaStatus(cudaGetLastError());
}

}  // namespace

DeviceStatus LaunchIm2Col(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* x,
                          const ColumnLayout& to, float* columns) {
  return Im2Col(stream, c, tile, x, to, columns);
}

DeviceStatus LaunchIm2Col(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* x,
                          const ColumnLayout& to, uint16_t* columns) {
  return Im2Col(stream, c, tile, x, to, columns);
}

DeviceStatus LaunchCol2Im(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* columns,
                          const ColumnLayout& from, bool adds, float* dx) {
  const Planes planes{tile.samples, c.in_channels};
  const int64_t pixels = c.window.in_pixels();
  if (planes.samples * planes.channels * pixels == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(c.window); !status.ok()) return status;
  const Grid grid = GridOf(pixels, planes);
  const Plane plane = PlaneOf(c.window, tile);
  float* to = dx + tile.first_sample * c.in_size();
  if (plane.kernel_height == 3 && plane.kernel_width == 3) {
    Col2Im<3>(stream, grid, plane, planes, columns, from, adds, to);
  } else {
    Col2Im<0>(stream, grid, plane, planes, columns, from, adds, to);
  }
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchTileOut(cudaStream_t stream, const Convolution& c,
                           const ConvolutionTile& tile, const float* out,
                           const ColumnLayout& from, const float* bias,
                           float* y) {
  const Planes planes{tile.samples, c.out_channels};
  const int64_t pixels = tile.out_rows * c.window.out_width();
  if (planes.samples * planes.channels * pixels == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(c.window); !status.ok()) return status;
  const auto [blocks, threads] = GridOf(pixels, planes);
  TileOutKernel<<<blocks, threads, 0, stream>>>(
      static_cast<int>(pixels), planes, out, from, bias, OutputLayout(c),
      y + OutputAt(c, tile));
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchTileIn(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* dy,
                          const ColumnLayout& to, float* out) {
  return TileIn(stream, c, tile, dy, to, out);
}

DeviceStatus LaunchTileIn(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* dy,
                          const ColumnLayout& to, uint16_t* out) {
  return TileIn(stream, c, tile, dy, to, out);
}

DeviceStatus LaunchSumSamples(cudaStream_t stream, int64_t samples, int64_t n,
                              const float* x, float beta, float* y) {
  if (n == 0) return DeviceStatus();
  SumSamplesKernel<<<Blocks(n), kThreads, 0, stream>>>(samples, n, x, beta, y);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
