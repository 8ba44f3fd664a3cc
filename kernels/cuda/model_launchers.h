// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "kernels/device_status.h"
#include "kernels/ops.h"

namespace tributary {

// The device code of convolutions, pooling, attention and batch norms, in the
// same way as in kernels/cuda/launchers.h.

// ---- convolution.cu: the parts of CudaConvolution
// How the columns of a tile lie in memory: pixel p of sample s in row r is
// element r * row + s * sample + p.
struct ColumnLayout {
  int64_t row = 0;
  int64_t sample = 0;  // at least the sample's pixels in the tile
};
// Elements between a sample's pixels and the next sample become 0. Columns of
// uint16_t are bfloat16.
DeviceStatus LaunchIm2Col(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* x,
                          const ColumnLayout& to, float* columns);
DeviceStatus LaunchIm2Col(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* x,
                          const ColumnLayout& to, uint16_t* columns);
// Adds to dx, or overwrites the tile's samples if not `adds`.
DeviceStatus LaunchCol2Im(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* columns,
                          const ColumnLayout& from, bool adds, float* dx);
// y's tile = out + bias. `out` may be y's tile itself.
DeviceStatus LaunchTileOut(cudaStream_t stream, const Convolution& c,
                           const ConvolutionTile& tile, const float* out,
                           const ColumnLayout& from, const float* bias,
                           float* y);
// out = dy's tile, with zeros as in Im2Col.
DeviceStatus LaunchTileIn(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* dy,
                          const ColumnLayout& to, float* out);
DeviceStatus LaunchTileIn(cudaStream_t stream, const Convolution& c,
                          const ConvolutionTile& tile, const float* dy,
                          const ColumnLayout& to, uint16_t* out);
// y = beta y + the sum of the rows of x [samples, n].
DeviceStatus LaunchSumSamples(cudaStream_t stream, int64_t samples, int64_t n,
                              const float* x, float beta, float* y);

// ---- pooling.cu
DeviceStatus LaunchMaxPool(cudaStream_t stream, const Window& w, int64_t planes,
                           const float* x, float* y, int32_t* argmax);
DeviceStatus LaunchMaxPoolBackward(cudaStream_t stream, const Window& w,
                                   int64_t planes, const float* dy,
                                   const int32_t* argmax, float* dx);
DeviceStatus LaunchAveragePool(cudaStream_t stream, const Window& w,
                               bool count_include_pad, int64_t planes,
                               const float* x, float* y);
DeviceStatus LaunchAveragePoolBackward(cudaStream_t stream, const Window& w,
                                       bool count_include_pad, int64_t planes,
                                       const float* dy, float* dx);

// ---- attention.cu. `rounded` rounds the operands of products to bfloat16.
DeviceStatus LaunchAttention(cudaStream_t stream, const AttentionShape& s,
                             bool rounded, const float* q, const float* k,
                             const float* v, float* y, float* log_sum);
// dots: device memory, one float per query.
DeviceStatus LaunchAttentionBackward(
    cudaStream_t stream, const AttentionShape& s, bool rounded, const float* q,
    const float* k, const float* v, const float* y, const float* log_sum,
    const float* dy, float* dots, float* dq, float* dk, float* dv);

// ---- batch_norm.cu. scratch: BatchNormScratchBytes of device memory.
size_t BatchNormScratchBytes(const BatchNormShape& s);
DeviceStatus LaunchBatchNorm(cudaStream_t stream, const BatchNormShape& s,
                             float epsilon, const float* x, const float* gamma,
                             const float* beta, float* y, float* mean,
                             float* rstd, float* variance, double* scratch);
DeviceStatus LaunchBatchNormWith(cudaStream_t stream, const BatchNormShape& s,
                                 float epsilon, const float* x,
                                 const float* gamma, const float* beta,
                                 const float* mean, const float* variance,
                                 float* y);
DeviceStatus LaunchBatchNormBackward(cudaStream_t stream,
                                     const BatchNormShape& s, const float* x,
                                     const float* gamma, const float* mean,
                                     const float* rstd, const float* dy,
                                     float keep, float* dx, float* dgamma,
                                     float* dbeta, double* scratch);
// scratch: BatchNormScratchBytes for the shape {rows, channels, pixels}.
DeviceStatus LaunchChannelSum(cudaStream_t stream, const BatchNormShape& s,
                              const float* x, float beta, float* out,
                              double* scratch);

}  // namespace tributary
