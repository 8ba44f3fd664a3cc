// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/row_team.cuh"
#include "kernels/loss_math.h"

namespace tributary {
namespace {

// The parameters that all rows of one call share.
struct CrossEntropyCall {
  int64_t rows;
  int64_t classes;
  int64_t ignore_index;
  const float* class_weights;  // or null
  Smoothing smoothing;
  float scale;
};

__device__ float ClassWeight(const float* class_weights, int64_t c) {
  return class_weights == nullptr ? 1.0f : class_weights[c];
}

// The sum of the classes' weights, which are 1 without `class_weights`.
template <typename Team>
__device__ double WeightSum(int64_t classes, const float* class_weights) {
  if (class_weights == nullptr) return static_cast<double>(classes);
  return Team::Sum(classes,
                   [=](int64_t c) { return double{class_weights[c]}; });
}

// Writes a row without a valid label: zeros if it is ignored, NaN otherwise.
template <typename Team>
__device__ void WriteRow(const CrossEntropyCall& call, float value, float* loss,
                         float* weight, float* d) {
  if (Team::Index() == 0) {
    *loss = value;
    if (weight != nullptr) *weight = value;
  }
  if (d == nullptr) return;
  for (int64_t c = Team::Index(); c < call.classes; c += Team::Size()) {
    d[c] = value;
  }
}

// label must be in range; d may be null or equal x.
template <typename Team>
__device__ void CrossEntropyOfRow(const CrossEntropyCall& call, const float* x,
                                  int64_t label, float weight_sum, float* loss,
                                  float* weight_out, float* d) {
  const int64_t classes = call.classes;
  const float largest = Team::Max(classes, x);
  const float label_logit = x[label] - largest;
  const double sum = Team::Sum(
      classes, [=](int64_t c) { return double{Exp(x[c] - largest)}; });
  const float log_sum = static_cast<float>(log(sum));
  const float weight = ClassWeight(call.class_weights, label);
  float smooth_loss = 0;
  if (call.smoothing.smooth > 0) {
    smooth_loss = static_cast<float>(Team::Sum(classes, [=](int64_t c) {
      return double{ClassWeight(call.class_weights, c)} *
             double{log_sum - (x[c] - largest)};
    }));
  }
  if (Team::Index() == 0) {
    *loss = CrossEntropyLoss(call.smoothing, weight * (log_sum - label_logit),
                             smooth_loss);
    if (weight_out != nullptr) *weight_out = weight;
  }
  if (d == nullptr) return;
  Team::Sync();  // all threads have read x[label]
  const float inverse = static_cast<float>(1.0 / sum);
  ForEachOf<Team>(classes, x, [=](int64_t c, float logit) {
    const float p = Exp(logit - largest) * inverse;
    const float hit = c == label ? 1.0f : 0.0f;
    d[c] = call.scale * CrossEntropyGradient(call.smoothing, p, hit, weight,
                                             ClassWeight(call.class_weights, c),
                                             weight_sum);
  });
}

template <typename Team>
__global__ void __launch_bounds__(kRowThreads, 2)
    CrossEntropyKernel(CrossEntropyCall call, const float* logits,
                       const int64_t* labels, float* row_loss,
                       float* row_weight, float* d_logits) {
  const float weight_sum =
      static_cast<float>(WeightSum<Team>(call.classes, call.class_weights));
  for (int64_t r = Team::First(); r < call.rows; r += Team::Step()) {
    const int64_t label = labels[r];
    float* weight = row_weight == nullptr ? nullptr : row_weight + r;
    float* d = d_logits == nullptr ? nullptr : d_logits + r * call.classes;
    if (label == call.ignore_index) {
      WriteRow<Team>(call, 0.0f, row_loss + r, weight, d);
    } else if (label < 0 || label >= call.classes) {
      WriteRow<Team>(call, nanf(""), row_loss + r, weight, d);
    } else {
      CrossEntropyOfRow<Team>(call, logits + r * call.classes, label,
                              weight_sum, row_loss + r, weight, d);
    }
  }
}

template <typename Team>
__global__ void __launch_bounds__(kRowThreads, 2)
    PartKernel(int64_t rows, ClassRange range, const float* logits,
               const int64_t* labels, const float* class_weights,
               float* parts) {
  const double weights = WeightSum<Team>(
      range.count,
      class_weights == nullptr ? nullptr : class_weights + range.first);
  for (int64_t r = Team::First(); r < rows; r += Team::Step()) {
    const float* x = logits + r * range.count;
    const float largest = Team::Max(range.count, x);
    const double sum = Team::Sum(
        range.count, [=](int64_t c) { return double{Exp(x[c] - largest)}; });
    const double total = Team::Sum(range.count, [=](int64_t c) {
      return double{ClassWeight(class_weights, range.first + c)} *
             double{x[c] - largest};
    });
    if (Team::Index() != 0) continue;
    const int64_t label = labels[r] - range.first;
    float* part = parts + r * kCrossEntropyPart;
    part[kPartLargest] = largest;
    part[kPartSum] = static_cast<float>(sum);
    part[kPartLabel] = label >= 0 && label < range.count ? x[label] : 0.0f;
    part[kPartTotal] = static_cast<float>(total);
    part[kPartWeights] = static_cast<float>(weights);
  }
}

// Every thread joins the parts.
template <typename Team>
__global__ void __launch_bounds__(kRowThreads, 2)
    OfPartsKernel(int64_t rows, ClassRange range, const float* logits,
                  const int64_t* labels, int ranks, const float* parts,
                  const float* class_weights, Smoothing smoothing, float scale,
                  float* row_loss, float* d_logits) {
  const float weight_sum =
      static_cast<float>(WeightSum<Team>(range.total, class_weights));
  for (int64_t r = Team::First(); r < rows; r += Team::Step()) {
    const int64_t label = labels[r];
    const bool good = label >= 0 && label < range.total;
    const CrossEntropyRow row = JoinCrossEntropyParts(
        ranks, parts + r * kCrossEntropyPart, rows * kCrossEntropyPart);
    const float weight = good ? ClassWeight(class_weights, label) : 1.0f;
    if (Team::Index() == 0) {
      row_loss[r] = good ? CrossEntropyLoss(smoothing, weight * row.label_loss,
                                            row.smooth_loss)
                         : nanf("");
    }
    if (d_logits == nullptr) continue;
    const float inverse = static_cast<float>(1.0 / row.sum);
    float* to = d_logits + r * range.count;
    ForEachOf<Team>(
        range.count, logits + r * range.count, [=](int64_t c, float logit) {
          const float hit = c + range.first == label ? 1.0f : 0.0f;
          const float d = CrossEntropyGradient(
              smoothing, Exp(logit - row.largest) * inverse, hit, weight,
              ClassWeight(class_weights, range.first + c), weight_sum);
          to[c] = good ? scale * d : nanf("");
        });
  }
}

// One thread per element. weights and d may be null; d may equal logits.
__global__ void BceKernel(int64_t n, const float* logits, const float* targets,
                          float pos_weight, const float* weights, float scale,
                          float* loss, float* d) {
  for (int64_t i = ThreadIndex(); i < n; i += ThreadCount()) {
    const float x = logits[i], t = targets[i];
    const float weight = weights == nullptr ? 1.0f : weights[i];
    loss[i] = weight * BceLoss(x, t, pos_weight);
    if (d != nullptr) d[i] = scale * (weight * BceGradient(x, t, pos_weight));
  }
}

struct SquaredErrorFunctor {
  __device__ void operator()(const float* in, float* out) const {
    out[0] = SquaredErrorLoss(in[0] - in[1]);
  }
};

struct SquaredErrorBackwardFunctor {
  float scale;
  __device__ void operator()(const float* in, float* out) const {
    out[0] = SquaredErrorLoss(in[0] - in[1]);
    out[1] = scale * SquaredErrorGradient(in[0] - in[1]);
  }
};

}  // namespace

DeviceStatus LaunchCrossEntropy(cudaStream_t stream, int64_t rows,
                                int64_t classes, const float* logits,
                                const int64_t* labels,
                                const CrossEntropyOptions& options, float scale,
                                float* row_loss, float* row_weight,
                                float* d_logits) {
  if (rows == 0) return DeviceStatus();
  const float s = options.label_smoothing;
  const CrossEntropyCall call{rows,
                              classes,
                              options.ignore_index,
                              options.class_weights,
                              {1.0f - s, s / static_cast<float>(classes)},
                              scale};
  if (classes >= kLongRow) {
    CrossEntropyKernel<BlockTeam><<<RowBlocks(rows), kRowThreads, 0, stream>>>(
        call, logits, labels, row_loss, row_weight, d_logits);
  } else {
    CrossEntropyKernel<WarpTeam><<<WarpBlocks(rows), kThreads, 0, stream>>>(
        call, logits, labels, row_loss, row_weight, d_logits);
  }
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchCrossEntropyPart(cudaStream_t stream, int64_t rows,
                                    const ClassRange& range,
                                    const float* logits, const int64_t* labels,
                                    const float* class_weights, float* part) {
  if (rows == 0) return DeviceStatus();
  if (range.count >= kLongRow) {
    PartKernel<BlockTeam><<<RowBlocks(rows), kRowThreads, 0, stream>>>(
        rows, range, logits, labels, class_weights, part);
  } else {
    PartKernel<WarpTeam><<<WarpBlocks(rows), kThreads, 0, stream>>>(
        rows, range, logits, labels, class_weights, part);
  }
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchCrossEntropyOfParts(
    cudaStream_t stream, int64_t rows, const ClassRange& range,
    const float* logits, const int64_t* labels, int ranks, const float* parts,
    const CrossEntropyOptions& options, float scale, float* row_loss,
    float* d_logits) {
  if (rows == 0) return DeviceStatus();
  const float s = options.label_smoothing;
  const Smoothing smoothing = {1.0f - s, s / static_cast<float>(range.total)};
  if (range.count >= kLongRow) {
    OfPartsKernel<BlockTeam><<<RowBlocks(rows), kRowThreads, 0, stream>>>(
        rows, range, logits, labels, ranks, parts, options.class_weights,
        smoothing, scale, row_loss, d_logits);
  } else {
    OfPartsKernel<WarpTeam><<<WarpBlocks(rows), kThreads, 0, stream>>>(
        rows, range, logits, labels, ranks, parts, options.class_weights,
        smoothing, scale, row_loss, d_logits);
  }
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchBceWithLogits(cudaStream_t stream, int64_t n,
                                 const float* logits, const float* targets,
                                 float pos_weight, const float* weights,
                                 float scale, float* loss, float* d_logits) {
  if (n == 0) return DeviceStatus();
  BceKernel<<<Blocks(n), kThreads, 0, stream>>>(n, logits, targets, pos_weight,
                                                weights, scale, loss, d_logits);
  return CudaStatus(cudaGetLastError());
}

DeviceStatus LaunchSquaredError(cudaStream_t stream, int64_t n,
                                const float* prediction, const float* targets,
                                float scale, float* loss, float* d_prediction) {
  if (d_prediction == nullptr) {
    return LaunchMap<2, 1>(stream, n, {{prediction, targets}, {loss}},
                           SquaredErrorFunctor());
  }
  return LaunchMap<2, 2>(stream, n,
                         {{prediction, targets}, {loss, d_prediction}},
                         SquaredErrorBackwardFunctor{scale});
}

}  // namespace tributary
