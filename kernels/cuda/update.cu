// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "common/optimizer/optimizer_kinds.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/map.cuh"

namespace tributary {
namespace {

// Arrays that one launch of the weighted sum takes at most.
constexpr int kMostParts = 64;

struct Parts {
  const float* part[kMostParts];
  float weight[kMostParts];
};

// out = the weighted sum of the parts, in order. With `add`, the sum starts
// from out. WeightedSumQuadsKernel takes four adjacent elements per thread,
// which needs pointers that allow 16-byte accesses.
__global__ void WeightedSumKernel(int64_t n, int count, Parts parts, bool add,
                                  float* out) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    float sum = parts.weight[0] * parts.part[0][i];
    if (add) sum = out[i] + sum;
    for (int r = 1; r < count; ++r) sum += parts.weight[r] * parts.part[r][i];
    out[i] = sum;
  }
}

__device__ float4 Scaled(float weight, const float4& x) {
  return make_float4(weight * x.x, weight * x.y, weight * x.z, weight * x.w);
}
__device__ float4 Sum(const float4& x, const float4& y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

__global__ void WeightedSumQuadsKernel(int64_t quads, int count, Parts parts,
                                       bool add, float4* out) {
  const auto part = [&parts](int r, int64_t q) {
    return Scaled(parts.weight[r],
                  reinterpret_cast<const float4*>(parts.part[r])[q]);
  };
  for (int64_t q = ThreadIndex(); q < quads; q += ThreadCount()) {
    float4 sum = part(0, q);
    if (add) sum = Sum(out[q], sum);
    for (int r = 1; r < count; ++r) sum = Sum(sum, part(r, q));
    out[q] = sum;
  }
}

bool AllowsQuads(int64_t n, int count, const Parts& parts, const float* out) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(out);
  for (int r = 0; r < count; ++r) {
    bits |= reinterpret_cast<uintptr_t>(parts.part[r]);
  }
  return n % 4 == 0 && bits % sizeof(float4) == 0;
}

// in: gradient, weight, states. out: weight (or its direction), states.
template <typename Rule>
struct UpdateFunctor {
  static constexpr int kStates = static_cast<int>(Rule::kStates.size());

  OptimizerStep p;
  __device__ void operator()(const float* in, float* out) const {
    Update(in, out, std::make_integer_sequence<int, kStates>());
  }
  template <int... kState>
  __device__ void Update(const float* in, float* out,
                         std::integer_sequence<int, kState...>) const {
    ((out[1 + kState] = in[2 + kState]), ...);
    out[0] = Rule::Update(p, in[0], in[1], &out[1 + kState]...);
  }
};

// The arguments of one call of LaunchOptimizerUpdate.
struct UpdateCall {
  cudaStream_t stream;
  const OptimizerStep& step;
  int64_t n;
  const float* gradient;
  const float* weight_in;
  float* weight_out;
  float* const* state;
};

template <typename Rule>
DeviceStatus Launch(const UpdateCall& call) {
  constexpr int kStates = UpdateFunctor<Rule>::kStates;
  MapArrays<2 + kStates, 1 + kStates> arrays;
  arrays.in[0] = call.gradient;
  arrays.in[1] = call.weight_in;
  arrays.out[0] = call.weight_out;
  for (int s = 0; s < kStates; ++s) {
    arrays.in[2 + s] = arrays.out[1 + s] = call.state[s];
  }
  return LaunchMap(call.stream, call.n, arrays, UpdateFunctor<Rule>{call.step});
}

struct ApplyDirectionFunctor {
  float rate;
  float scale;
  __device__ void operator()(const float* in, float* out) const {
    out[0] = scale * in[1] - rate * in[0];
  }
};

// One warp for each row of the slice.
__global__ void RowSumsKernel(FactoredSlice slice, float scale, double unit,
                              const float* gradient, double* sums) {
  const int64_t before = slice.begin % slice.columns;
  const int64_t rows = slice.rows();
  for (int64_t r = WarpIndex(); r < rows; r += WarpCount()) {
    const int64_t first = r == 0 ? 0 : r * slice.columns - before;
    const int64_t next = (r + 1) * slice.columns - before;
    const int64_t end = next < slice.size ? next : slice.size;
    const double sum = WarpSum(end - first, [=](int64_t i) {
      return RoundedSquare(scale * gradient[first + i], unit);
    });
    if (Lane() == 0) sums[r] = sum;
  }
}

// One thread for each column and run of kRowsPerThread rows. The sums are
// exact, so the order in which threads add theirs does not matter.
constexpr int64_t kRowsPerThread = 64;

__global__ void ColumnSumsKernel(FactoredSlice slice, float scale, double unit,
                                 const float* gradient, double* sums) {
  const int64_t before = slice.begin % slice.columns;
  const int64_t rows = slice.rows();
  const int64_t runs = (rows + kRowsPerThread - 1) / kRowsPerThread;
  for (int64_t t = ThreadIndex(); t < runs * slice.columns;
       t += ThreadCount()) {
    const int64_t column = t % slice.columns;
    const int64_t from = t / slice.columns * kRowsPerThread;
    double sum = 0;
    for (int64_t r = from; r < rows && r < from + kRowsPerThread; ++r) {
      const int64_t i = r * slice.columns + column - before;
      if (i >= 0 && i < slice.size) {
        sum += RoundedSquare(scale * gradient[i], unit);
      }
    }
    atomicAdd(sums + column, sum);
  }
}

__global__ void FactoredDirectionKernel(FactoredSlice slice, OptimizerStep p,
                                        float mean, const float* rows,
                                        const float* columns,
                                        const float* gradient,
                                        float* direction) {
  const int64_t before = slice.begin % slice.columns;
  for (int64_t i = ThreadIndex(); i < slice.size; i += ThreadCount()) {
    const int64_t at = before + i;
    direction[i] = AdafactorDirection(
        p, gradient[i] * p.gradient_scale,
        rows[at / slice.columns] * columns[at % slice.columns] / mean);
  }
}

// One warp per grain.
__global__ void GrainSquaresKernel(int64_t n, int64_t grain, const float* x,
                                   double* out) {
  const int64_t grains = (n + grain - 1) / grain;
  for (int64_t g = WarpIndex(); g < grains; g += WarpCount()) {
    const float* run = x + g * grain;
    const int64_t size = g + 1 < grains ? grain : n - g * grain;
    const double sum = WarpSum(
        size, [=](int64_t i) { return double{run[i]} * double{run[i]}; });
    if (Lane() == 0) out[g] = sum;
  }
}

}  // namespace

DeviceStatus LaunchWeightedSum(cudaStream_t stream, int64_t n, int count,
                               const float* const* parts, const float* weights,
                               float* out) {
  if (n == 0) return DeviceStatus();
  for (int first = 0; first < count; first += kMostParts) {
    const int group = std::min(kMostParts, count - first);
    Parts launch = {};
    std::copy_n(parts + first, group, launch.part);
    std::copy_n(weights + first, group, launch.weight);
    if (AllowsQuads(n, group, launch, out)) {
      WeightedSumQuadsKernel<<<Blocks(n / 4), kThreads, 0, stream>>>(
          n / 4, group, launch, first > 0, reinterpret_cast<float4*>(out));
    } else {
      WeightedSumKernel<<<Blocks(n), kThreads, 0, stream>>>(n, group, launch,
                                                            first > 0, out);
    }
    if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
      return status;
    }
  }
  return DeviceStatus();
}

DeviceStatus LaunchOptimizerUpdate(cudaStream_t stream,
                                   const OptimizerStep& step, int64_t n,
                                   const float* gradient,
                                   const float* weight_in, float* weight_out,
                                   float* const* state) {
  const UpdateCall call{stream,    step,       n,    gradient,
                        weight_in, weight_out, state};
  DeviceStatus status = DeviceStatus::Error("unknown update rule");
  VisitRule(step, [&](auto rule) {
    static_cast<void>(status = Launch<decltype(rule)>(call));
  });
  return status;
}

DeviceStatus LaunchApplyDirection(cudaStream_t stream, int64_t n, float rate,
                                  float weight_scale, const float* direction,
                                  const float* weight_in, float* weight_out) {
  return LaunchMap<2, 1>(stream, n, {{direction, weight_in}, {weight_out}},
                         ApplyDirectionFunctor{rate, weight_scale});
}

DeviceStatus LaunchFactorSums(cudaStream_t stream, const FactoredSlice& slice,
                              float scale, double unit, const float* gradient,
                              double* sums) {
  const int64_t rows = slice.rows();
  RowSumsKernel<<<WarpBlocks(rows), kThreads, 0, stream>>>(slice, scale, unit,
                                                           gradient, sums);
  const cudaError_t cleared = cudaMemsetAsync(
      sums + rows, 0, static_cast<size_t>(slice.columns) * sizeof(double),
      stream);
  if (cleared != cudaSuccess) return CudaStatus(cleared);
  const int64_t runs = (rows + kRowsPerThread - 1) / kRowsPerThread;
  ColumnSumsKernel<<<Blocks(runs * slice.columns), kThreads, 0, stream>>>(
      slice, scale, unit, gradient, sums + rows);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchFactoredDirection(cudaStream_t stream,
                                     const FactoredSlice& slice,
                                     const OptimizerStep& step, float mean,
                                     const float* rows, const float* columns,
                                     const float* gradient, float* direction) {
  FactoredDirectionKernel<<<Blocks(slice.size), kThreads, 0, stream>>>(
      slice, step, mean, rows, columns, gradient, direction);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchGrainSquares(cudaStream_t stream, int64_t n, int64_t grain,
                                const float* x, double* out) {
  if (n == 0) return DeviceStatus();
  GrainSquaresKernel<<<WarpBlocks((n + grain - 1) / grain), kThreads, 0,
                       stream>>>(n, grain, x, out);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
