// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation_math.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/map.cuh"

namespace tributary {
namespace {

__global__ void FillKernel(int64_t n, float value, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) y[i] = value;
}

// One thread per element.
__global__ void AddBiasKernel(int64_t n, int64_t cols, const float* bias,
                              float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    y[i] += bias[i % cols];
  }
}

__global__ void AddKernel(int64_t n, int64_t cols, const float* x,
                          const float* b, float* y) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    y[i] = x[i] + b[i % cols];
  }
}

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

// One thread per group of four columns, which share one 128-bit draw.
__global__ void DropoutKernel(DropoutStep step, int64_t first_row,
                              int64_t row_stride, int64_t rows, int64_t cols,
                              const float* x, float* y) {
  const int64_t groups = (cols + 3) / 4;
  for (int64_t i = ThreadIndex(); i < rows * groups; i += ThreadCount()) {
    const int64_t row = i / groups;
    const int64_t group = i % groups;
    const Philox4 draws =
        DropoutDraws(step, first_row + row * row_stride, group);
    for (int64_t w = 0; w < 4 && 4 * group + w < cols; ++w) {
      const int64_t at = row * cols + 4 * group + w;
      y[at] = DropoutElement(step, draws.word[w], x[at]);
    }
  }
}

}  // namespace

DeviceStatus LaunchFill(cudaStream_t stream, int64_t n, float value, float* y) {
  if (n == 0) return DeviceStatus();
  FillKernel<<<Blocks(n), kThreads, 0, stream>>>(n, value, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchAddBias(cudaStream_t stream, int64_t rows, int64_t cols,
                           const float* bias, float* y) {
  const int64_t n = rows * cols;
  if (n == 0) return DeviceStatus();
  AddBiasKernel<<<Blocks(n), kThreads, 0, stream>>>(n, cols, bias, y);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchAdd(cudaStream_t stream, int64_t rows, int64_t cols,
                       const float* x, const float* b, float* y) {
  const int64_t n = rows * cols;
  if (n == 0) return DeviceStatus();
  AddKernel<<<Blocks(n), kThreads, 0, stream>>>(n, cols, x, b, y);
  return CudaStatus(cudaGetLastError());
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
  DropoutKernel<<<Blocks(groups), kThreads, 0, stream>>>(
      step, key.first_row, key.row_stride, rows, cols, x, y);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
