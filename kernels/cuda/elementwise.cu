// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation_math.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/row_grid.cuh"

namespace tributary {
namespace {

template <typename Vector>
__global__ void FillKernel(int64_t n, Vector value, Vector* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] = value;
}

__device__ float SumOf(float a, float b) { return a + b; }
__device__ float4 SumOf(const float4& a, const float4& b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// y = x + bias for every row; y may be x.
template <typename Vector>
__global__ void AddRowKernel(int64_t rows, int64_t cols, const Vector* x,
                             const Vector* bias, Vector* y) {
  ForEachPlace(rows, cols, [=](int64_t r, int64_t c) {
    y[r * cols + c] = SumOf(x[r * cols + c], bias[c]);
  });
}

struct AddFunctor {
  __device__ void operator()(const float* in, float* out) const {
    out[0] = in[0] + in[1];
  }
};

__global__ void ToIdsKernel(int64_t n, const float* x, int64_t first,
                            int64_t count, int64_t* ids) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const int64_t id = static_cast<int64_t>(x[i]) - first;
    ids[i] = id >= 0 && id < count ? id : -1;
  }
}

template <ActivationKind kKind>
struct ActivationFunctor {
  __device__ void operator()(const float* in, float* out) const {
    const float x = in[0];
    if constexpr (kKind == ActivationKind::kRelu) out[0] = Relu(x);
    if constexpr (kKind == ActivationKind::kGeluErf) out[0] = GeluErf(x);
    if constexpr (kKind == ActivationKind::kGeluTanh) out[0] = GeluTanh(x);
    if constexpr (kKind == ActivationKind::kSigmoid) out[0] = Sigmoid(x);
    if constexpr (kKind == ActivationKind::kTanh) out[0] = Tanh(x);
    if constexpr (kKind == ActivationKind::kSilu) out[0] = Silu(x);
  }
};

// in: x, y, dy.
template <ActivationKind kKind>
struct ActivationBackwardFunctor {
  __device__ void operator()(const float* in, float* out) const {
    const float x = in[0], y = in[1], dy = in[2];
    if constexpr (kKind == ActivationKind::kRelu) {
      out[0] = ReluBackward(x, y, dy);
    }
    if constexpr (kKind == ActivationKind::kGeluErf) {
      out[0] = GeluErfBackward(x, y, dy);
    }
    if constexpr (kKind == ActivationKind::kGeluTanh) {
      out[0] = GeluTanhBackward(x, y, dy);
    }
    if constexpr (kKind == ActivationKind::kSigmoid) {
      out[0] = SigmoidBackward(x, y, dy);
    }
    if constexpr (kKind == ActivationKind::kTanh) {
      out[0] = TanhBackward(x, y, dy);
    }
    if constexpr (kKind == ActivationKind::kSilu) {
      out[0] = SiluBackward(x, y, dy);
    }
  }
};

// One thread per element, for a rank that has only some columns of each row.
__global__ void DropoutRunsKernel(DropoutStep step, DropoutKey key,
                                  int64_t rows, int64_t cols, const float* x,
                                  float* y) {
  for (int64_t i = ThreadIndex(); i < rows * cols; i += ThreadCount()) {
    const int64_t c = i % cols;
    const int64_t column =
        key.first_column + c / key.run * key.run_stride + c % key.run;
    const Philox4 draws = DropoutDraws(
        step, key.first_row + i / cols * key.row_stride, column / 4);
    y[i] = DropoutElement(step, draws.word[column % 4], x[i]);
  }
}

// One thread per group of four columns, which share one 128-bit draw. kQuads:
// every group is whole and aligned to 16 bytes.
template <bool kQuads>
__global__ void DropoutKernel(DropoutStep step, int64_t first_row,
                              int64_t row_stride, int64_t rows, int64_t cols,
                              const float* x, float* y) {
  ForEachPlace(rows, (cols + 3) / 4, [=](int64_t row, int64_t group) {
    const Philox4 draws =
        DropoutDraws(step, first_row + row * row_stride, group);
    const int64_t first = row * cols + 4 * group;
    if constexpr (kQuads) {
      const float4 v = *reinterpret_cast<const float4*>(x + first);
      *reinterpret_cast<float4*>(y + first) =
          make_float4(DropoutElement(step, draws.word[0], v.x),
                      DropoutElement(step, draws.word[1], v.y),
                      DropoutElement(step, draws.word[2], v.z),
                      DropoutElement(step, draws.word[3], v.w));
    } else {
      for (int64_t w = 0; w < 4 && 4 * group + w < cols; ++w) {
        y[first + w] = DropoutElement(step, draws.word[w], x[first + w]);
      }
    }
  });
}

DeviceStatus AddRow(cudaStream_t stream, int64_t rows, int64_t cols,
                    const float* x, const float* bias, float* y) {
  if (TakesQuads(cols, x, y) && TakesQuads(cols, bias, y)) {
    const RowsGrid grid = GridOfRows(rows, cols / 4);
    AddRowKernel<<<grid.blocks, grid.threads, 0, stream>>>(
        rows, cols / 4, reinterpret_cast<const float4*>(x),
        reinterpret_cast<const float4*>(bias), reinterpret_cast<float4*>(y));
  } else {
    const RowsGrid grid = GridOfRows(rows, cols);
    AddRowKernel<<<grid.blocks, grid.threads, 0, stream>>>(rows, cols, x, bias,
                                                           y);
  }
  return CudaStatus(cudaGetLastError());
}

}  // namespace

DeviceStatus LaunchFill(cudaStream_t stream, int64_t n, float value, float* y) {
  if (n == 0) return DeviceStatus();
  if (TakesQuads(n, y, y)) {
    FillKernel<<<Blocks(n / 4), kThreads, 0, stream>>>(
        n / 4, make_float4(value, value, value, value),
        reinterpret_cast<float4*>(y));
  } else {
    FillKernel<<<Blocks(n), kThreads, 0, stream>>>(n, value, y);
  }
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchAddBias(cudaStream_t stream, int64_t rows, int64_t cols,
                           const float* bias, float* y) {
  if (rows * cols == 0) return DeviceStatus();
  return AddRow(stream, rows, cols, y, bias, y);
}

DeviceStatus LaunchAdd(cudaStream_t stream, int64_t rows, int64_t cols,
                       const float* x, const float* b, float* y) {
  if (rows * cols == 0) return DeviceStatus();
  if (rows > 1) return AddRow(stream, rows, cols, x, b, y);
  return LaunchMap<2, 1>(stream, cols, {{x, b}, {y}}, AddFunctor());
}

DeviceStatus LaunchToIds(cudaStream_t stream, int64_t n, const float* x,
                         int64_t first, int64_t count, int64_t* ids) {
  if (n == 0) return DeviceStatus();
  ToIdsKernel<<<Blocks(n), kThreads, 0, stream>>>(n, x, first, count, ids);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchActivation(cudaStream_t stream, ActivationKind kind,
                              int64_t n, const float* x, float* y) {
  using Kind = ActivationKind;
  const MapArrays<1, 1> arrays{{x}, {y}};
  switch (kind) {
    case Kind::kRelu:
      return LaunchMap(stream, n, arrays, ActivationFunctor<Kind::kRelu>());
    case Kind::kGeluErf:
      return LaunchMap(stream, n, arrays, ActivationFunctor<Kind::kGeluErf>());
    case Kind::kGeluTanh:
      return LaunchMap(stream, n, arrays, ActivationFunctor<Kind::kGeluTanh>());
    case Kind::kSigmoid:
      return LaunchMap(stream, n, arrays, ActivationFunctor<Kind::kSigmoid>());
    case Kind::kTanh:
      return LaunchMap(stream, n, arrays, ActivationFunctor<Kind::kTanh>());
    case Kind::kSilu:
      return LaunchMap(stream, n, arrays, ActivationFunctor<Kind::kSilu>());
  }
  return DeviceStatus::Error("unknown activation");
}

DeviceStatus LaunchActivationBackward(cudaStream_t stream, ActivationKind kind,
                                      int64_t n, const float* x, const float* y,
                                      const float* dy, float* dx) {
  using Kind = ActivationKind;
  const MapArrays<3, 1> arrays{{x, y, dy}, {dx}};
  const auto launch = [&](auto functor) {
    return LaunchMap(stream, n, arrays, functor);
  };
  switch (kind) {
    case Kind::kRelu:
      return launch(ActivationBackwardFunctor<Kind::kRelu>());
    case Kind::kGeluErf:
      return launch(ActivationBackwardFunctor<Kind::kGeluErf>());
    case Kind::kGeluTanh:
      return launch(ActivationBackwardFunctor<Kind::kGeluTanh>());
    case Kind::kSigmoid:
      return launch(ActivationBackwardFunctor<Kind::kSigmoid>());
    case Kind::kTanh:
      return launch(ActivationBackwardFunctor<Kind::kTanh>());
    case Kind::kSilu:
      return launch(ActivationBackwardFunctor<Kind::kSilu>());
  }
  return DeviceStatus::Error("unknown activation");
}

DeviceStatus LaunchDropout(cudaStream_t stream, const DropoutStep& step,
                           const DropoutKey& key, int64_t rows, int64_t cols,
                           const float* x, float* y) {
  const int64_t groups = rows * ((cols + 3) / 4);
  if (groups == 0) return DeviceStatus();
  if (key.run > 0) {
    DropoutRunsKernel<<<Blocks(rows * cols), kThreads, 0, stream>>>(
        step, key, rows, cols, x, y);
    return CudaStatus(cudaGetLastError());
  }
  const RowsGrid grid = GridOfRows(rows, (cols + 3) / 4);
  if (TakesQuads(cols, x, y)) {
    DropoutKernel<true><<<grid.blocks, grid.threads, 0, stream>>>(
        step, key.first_row, key.row_stride, rows, cols, x, y);
  } else {
    DropoutKernel<false><<<grid.blocks, grid.threads, 0, stream>>>(
        step, key.first_row, key.row_stride, rows, cols, x, y);
  }
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
