// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix for each column: a block of 32 x 32 threads
// takes 32 columns of a part of the rows; each of its 32 rows of threads sums
// every 32nd row, then the block folds these sums. A second kernel adds the
// parts. The order depends only on the matrix, and there are no atomics.
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

constexpr int kTile = 32;

int64_t Tiles(int64_t cols) { return (cols + kTile - 1) / kTile; }

// The parts that the rows are cut into: enough blocks for a device, but at
// least 128 rows per part.
int64_t Parts(int64_t rows, int64_t cols) {
  constexpr int64_t kBlocks = 528;
  const int64_t most = std::max<int64_t>(1, rows / 128);
  return std::clamp<int64_t>(kBlocks / Tiles(cols), 1, most);
}

// Folds sums[row][col] over rows; the result is in row 0.
__device__ void FoldTile(float (*sums)[kTile + 1]) {
  for (int height = kTile / 2; height > 0; height /= 2) {
    __syncthreads();
    if (threadIdx.y < height) {
      sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + height][threadIdx.x];
    }
  }
}

// kSums sums per column: term(r, c, terms) gives the terms of an element.
// sums: [kSums, parts, cols].
template <int kSums, typename Term>
__global__ void PartsKernel(int64_t rows, int64_t cols, int64_t rows_per_part,
                            Term term, float* sums) {
  __shared__ float tile[kSums][kTile][kTile + 1];
  const int64_t c = blockIdx.x * int64_t{kTile} + threadIdx.x;
  const int64_t first = blockIdx.y * rows_per_part;
  const int64_t end =
      first + rows_per_part < rows ? first + rows_per_part : rows;
  float sum[kSums] = {};
  if (c < cols) {
#pragma unroll 4
    for (int64_t r = first + threadIdx.y; r < end; r += kTile) {
      float terms[kSums];
      term(r, c, terms);
      for (int i = 0; i < kSums; ++i) sum[i] += terms[i];
    }
  }
  for (int i = 0; i < kSums; ++i) {
    tile[i][threadIdx.y][threadIdx.x] = sum[i];
    FoldTile(tile[i]);
    if (threadIdx.y == 0 && c < cols) {
      sums[(i * int64_t{gridDim.y} + blockIdx.y) * cols + c] =
          tile[i][0][threadIdx.x];
    }
  }
}

// The sum of the parts is added to out[c], or replaces it if not `adds`.
struct Target {
  float* out;  // or null
  bool adds;
};
template <int kSums>
struct Targets {
  Target of[kSums];
};

// One thread per column.
template <int kSums>
__global__ void AddPartsKernel(int64_t parts, int64_t cols, const float* sums,
                               Targets<kSums> targets) {
  for (int64_t c = ThreadIndex(); c < cols; c += ThreadCount()) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const Target target = targets.of[i];
      if (target.out == nullptr) continue;
      float sum = 0;
#pragma unroll 8
      for (int64_t p = 0; p < parts; ++p) {
        sum += sums[(i * parts + p) * cols + c];
      }
      target.out[c] = (target.adds ? target.out[c] : 0.0f) + sum;
    }
  }
}

struct Value {
  const float* x;
  int64_t cols;
  __device__ void operator()(int64_t r, int64_t c, float* terms) const {
    terms[0] = x[r * cols + c];
  }
};

// The gradients of LayerNorm's gamma and beta. mean is null for RMSNorm.
struct NormTerms {
  const float *x, *mean, *rstd, *dy;
  int64_t cols;
  __device__ void operator()(int64_t r, int64_t c, float* terms) const {
    const float upstream = dy[r * cols + c];
    const float center = mean == nullptr ? 0.0f : mean[r];
    terms[0] = upstream * ((x[r * cols + c] - center) * rstd[r]);
    terms[1] = upstream;
  }
};

template <int kSums, typename Term>
DeviceStatus SumColumns(cudaStream_t stream, int64_t rows, int64_t cols,
                        Term term, const Targets<kSums>& targets, float* sums) {
  const int64_t parts = Parts(rows, cols);
  const dim3 blocks(static_cast<unsigned>(Tiles(cols)),
                    static_cast<unsigned>(parts));
  PartsKernel<kSums><<<blocks, dim3(kTile, kTile), 0, stream>>>(
      rows, cols, (rows + parts - 1) / parts, term, sums);
  if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
    return status;
  }
  AddPartsKernel<<<Blocks(cols), kThreads, 0, stream>>>(parts, cols, sums,
                                                        targets);
  return CudaStatus(cudaGetLastError());
}

}  // namespace

size_t ColumnSumScratchBytes(int64_t rows, int64_t cols, int sums) {
  return static_cast<size_t>(sums * Parts(rows, cols) * cols) * sizeof(float);
}

DeviceStatus LaunchColumnSum(cudaStream_t stream, int64_t rows, int64_t cols,
                             const float* x, float beta, float* out,
                             float* scratch) {
  if (cols == 0) return DeviceStatus();
  return SumColumns<1>(stream, rows, cols, Value{x, cols}, {{{out, beta != 0}}},
                       scratch);
}

DeviceStatus LaunchLayerNormParameters(cudaStream_t stream, int64_t rows,
                                       int64_t cols, const float* x,
                                       const float* mean, const float* rstd,
                                       const float* dy, float* dgamma,
                                       float* dbeta, float* scratch) {
  if (rows * cols == 0) return DeviceStatus();
  return SumColumns<2>(stream, rows, cols, NormTerms{x, mean, rstd, dy, cols},
                       {{{dgamma, true}, {dbeta, true}}}, scratch);
}

}  // namespace tributary
