#include "kernels/cuda/launchers.h"
#include "kernels/cuda/map.cuh"
#include "kernels/optimizer_math.h"

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

// in: gradient, weight, states. out: weight (for LAMB the direction), states.
template <UpdateRule kRule>
struct UpdateFunctor {
  OptimizerStep p;
  __device__ void operator()(const float* in, float* out) const {
    const float g = in[0], w = in[1];
    if constexpr (kRule == UpdateRule::kSgd) {
      out[0] = SgdUpdate(p, g, w);
    } else if constexpr (kRule == UpdateRule::kMomentum) {
      out[1] = in[2];
      out[0] = MomentumUpdate(p, g, w, &out[1]);
    } else if constexpr (kRule == UpdateRule::kNesterov) {
      out[1] = in[2];
      out[0] = NesterovUpdate(p, g, w, &out[1]);
    } else if constexpr (kRule == UpdateRule::kAdagrad) {
      out[1] = in[2];
      out[0] = AdagradUpdate(p, g, w, &out[1]);
    } else if constexpr (kRule == UpdateRule::kRmsprop) {
      out[1] = in[2];
      out[0] = RmspropUpdate(p, g, w, &out[1]);
    } else {
      WithSeveralStates(g, w, in, out);
    }
  }

  __device__ void WithSeveralStates(float g, float w, const float* in,
                                    float* out) const {
    out[1] = in[2];
    out[2] = in[3];
    if constexpr (kRule == UpdateRule::kAdam) {
      out[0] = AdamUpdate(p, g, w, &out[1], &out[2]);
    } else if constexpr (kRule == UpdateRule::kRmspropMomentum) {
      out[0] = RmspropMomentumUpdate(p, g, w, &out[1], &out[2]);
    } else if constexpr (kRule == UpdateRule::kRmspropCentered) {
      out[0] = RmspropCenteredUpdate(p, g, w, &out[1], &out[2]);
    } else if constexpr (kRule == UpdateRule::kFtrl) {
      out[0] = FtrlUpdate(p, g, w, &out[1], &out[2]);
    } else if constexpr (kRule == UpdateRule::kLamb) {
      out[0] = LambElement(p, g, w, &out[1], &out[2]);
    } else if constexpr (kRule == UpdateRule::kAmsgrad) {
      out[3] = in[4];
      out[0] = AmsgradUpdate(p, g, w, &out[1], &out[2], &out[3]);
    } else {
      static_assert(kRule == UpdateRule::kRmspropCenteredMomentum);
      out[3] = in[4];
      out[0] =
          RmspropCenteredMomentumUpdate(p, g, w, &out[1], &out[2], &out[3]);
    }
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

template <UpdateRule kRule, int kStates>
DeviceStatus Launch(const UpdateCall& call) {
  MapArrays<2 + kStates, 1 + kStates> arrays;
  arrays.in[0] = call.gradient;
  arrays.in[1] = call.weight_in;
  arrays.out[0] = call.weight_out;
  for (int s = 0; s < kStates; ++s) {
    arrays.in[2 + s] = arrays.out[1 + s] = call.state[s];
  }
  return LaunchMap(call.stream, call.n, arrays,
                   UpdateFunctor<kRule>{call.step});
}

struct ApplyDirectionFunctor {
  float rate;
  __device__ void operator()(const float* in, float* out) const {
    out[0] = in[1] - rate * in[0];
  }
};

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
  using Rule = UpdateRule;
  const UpdateCall call{stream,    step,       n,    gradient,
                        weight_in, weight_out, state};
  switch (step.rule) {
    case Rule::kSgd:
      return Launch<Rule::kSgd, 0>(call);
    case Rule::kMomentum:
      return Launch<Rule::kMomentum, 1>(call);
    case Rule::kNesterov:
      return Launch<Rule::kNesterov, 1>(call);
    case Rule::kAdam:
      return Launch<Rule::kAdam, 2>(call);
    case Rule::kAmsgrad:
      return Launch<Rule::kAmsgrad, 3>(call);
    case Rule::kAdagrad:
      return Launch<Rule::kAdagrad, 1>(call);
    case Rule::kRmsprop:
      return Launch<Rule::kRmsprop, 1>(call);
    case Rule::kRmspropMomentum:
      return Launch<Rule::kRmspropMomentum, 2>(call);
    case Rule::kRmspropCentered:
      return Launch<Rule::kRmspropCentered, 2>(call);
    case Rule::kRmspropCenteredMomentum:
      return Launch<Rule::kRmspropCenteredMomentum, 3>(call);
    case Rule::kFtrl:
      return Launch<Rule::kFtrl, 2>(call);
    case Rule::kLamb:
      return Launch<Rule::kLamb, 2>(call);
  }
  return DeviceStatus::Error("unknown update rule");
}

DeviceStatus LaunchApplyDirection(cudaStream_t stream, int64_t n, float rate,
                                  const float* direction,
                                  const float* weight_in, float* weight_out) {
  return LaunchMap<2, 1>(stream, n, {{direction, weight_in}, {weight_out}},
                         ApplyDirectionFunctor{rate});
}

DeviceStatus LaunchGrainSquares(cudaStream_t stream, int64_t n, int64_t grain,
                                const float* x, double* out) {
  if (n == 0) return DeviceStatus();
  GrainSquaresKernel<<<WarpBlocks((n + grain - 1) / grain), kThreads, 0,
                       stream>>>(n, grain, x, out);
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
