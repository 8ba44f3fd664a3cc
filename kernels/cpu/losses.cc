// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/loss_math.h"

namespace tributary {
namespace {

// The parameters that all rows of one call share. When logits are split by
// class, the classes and their weights are those of one rank.
struct CrossEntropyCall {
  int64_t classes;
  const float* class_weights;
  float weight_sum;  // over all classes, of all ranks
  Smoothing smoothing;
  float scale;
};

// The callers decide outside the loops whether there are class weights: a
// masked vector load through a null pointer still costs hundreds of cycles.
template <bool kWeighted>
TRIBUTARY_INLINE float ClassWeight(const float* class_weights, int64_t c) {
  if constexpr (kWeighted) return class_weights[c];
  return 1.0f;
}

float SumOf(int64_t n, const float* x) {
  return static_cast<float>(
      LaneSum(n, [x](int64_t i) { return double{x[i]}; }));
}

// Returns the row's loss. label must be in range; d may be null or equal x.
template <bool kWeighted>
TRIBUTARY_INLINE float CrossEntropyOfRow(const CrossEntropyCall& call,
                                         const float* x, int64_t label,
                                         float weight, float* d) {
  const int64_t classes = call.classes;
  const float* class_weights = call.class_weights;
  const float largest = LaneMax(classes, x);
  const double sum = LaneSum(classes, [=](int64_t c) TRIBUTARY_INLINE_LAMBDA {
    return double{Exp(x[c] - largest)};
  });
  const float log_sum = static_cast<float>(std::log(sum));
  const float label_logit = x[label] - largest;
  const float label_loss = weight * (log_sum - label_logit);
  float smooth_loss = 0;
  if (call.smoothing.smooth > 0) {
    smooth_loss = static_cast<float>(
        LaneSum(classes, [=](int64_t c) TRIBUTARY_INLINE_LAMBDA {
          return double{ClassWeight<kWeighted>(class_weights, c)} *
                 double{log_sum - (x[c] - largest)};
        }));
  }
  const float loss = CrossEntropyLoss(call.smoothing, label_loss, smooth_loss);
  if (d == nullptr) return loss;
  const float inverse = static_cast<float>(1.0 / sum);
  const float scale = call.scale;
  const float weight_sum = call.weight_sum;
  const Smoothing smoothing = call.smoothing;
  const auto gradient = [=](float logit, float hit,
                            int64_t c) TRIBUTARY_INLINE_LAMBDA {
    return scale * CrossEntropyGradient(
                       smoothing, Exp(logit) * inverse, hit, weight,
                       ClassWeight<kWeighted>(class_weights, c), weight_sum);
  };
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < classes; ++c) d[c] = gradient(x[c] - largest, 0, c);
  d[label] = gradient(label_logit, 1, label);
  return loss;
}

TRIBUTARY_CLONES float PlainRow(CrossEntropyCall call, const float* x,
                                int64_t label, float* d) {
  return CrossEntropyOfRow<false>(call, x, label, 1.0f, d);
}

TRIBUTARY_CLONES float WeightedRow(CrossEntropyCall call, const float* x,
                                   int64_t label, float* d) {
  return CrossEntropyOfRow<true>(call, x, label, call.class_weights[label], d);
}

// label is relative to this rank's classes and may be outside of them;
// class_weights are those of this rank's classes.
template <bool kWeighted>
TRIBUTARY_INLINE void PartOfRow(int64_t classes, const float* x, int64_t label,
                                const float* class_weights, float* part) {
  const float largest = LaneMax(classes, x);
  part[kPartLargest] = largest;
  part[kPartSum] = static_cast<float>(
      LaneSum(classes, [=](int64_t c) TRIBUTARY_INLINE_LAMBDA {
        return double{Exp(x[c] - largest)};
      }));
  part[kPartLabel] = label >= 0 && label < classes ? x[label] : 0.0f;
  part[kPartTotal] = static_cast<float>(
      LaneSum(classes, [=](int64_t c) TRIBUTARY_INLINE_LAMBDA {
        return double{ClassWeight<kWeighted>(class_weights, c)} *
               double{x[c] - largest};
      }));
  part[kPartWeights] = static_cast<float>(classes);
  if constexpr (kWeighted) part[kPartWeights] = SumOf(classes, class_weights);
}

TRIBUTARY_CLONES void PlainPart(int64_t classes, const float* x, int64_t label,
                                float* part) {
  PartOfRow<false>(classes, x, label, nullptr, part);
}

TRIBUTARY_CLONES void WeightedPart(int64_t classes, const float* x,
                                   int64_t label, const float* class_weights,
                                   float* part) {
  PartOfRow<true>(classes, x, label, class_weights, part);
}

// weight: that of the row's label, which another rank may have. d may equal x.
template <bool kWeighted>
TRIBUTARY_INLINE void GradientOfPart(const CrossEntropyCall& call,
                                     const CrossEntropyRow& row, float weight,
                                     const float* x, int64_t label, float* d) {
  const float inverse = static_cast<float>(1.0 / row.sum);
  const float largest = row.largest;
  const float* class_weights = call.class_weights;
  const float weight_sum = call.weight_sum;
  const float scale = call.scale;
  const Smoothing smoothing = call.smoothing;
  const auto gradient = [=](float logit, float hit,
                            int64_t c) TRIBUTARY_INLINE_LAMBDA {
    return scale * CrossEntropyGradient(
                       smoothing, Exp(logit - largest) * inverse, hit, weight,
                       ClassWeight<kWeighted>(class_weights, c), weight_sum);
  };
  const bool has_label = label >= 0 && label < call.classes;
  const float label_logit = has_label ? x[label] : 0.0f;
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < call.classes; ++c) d[c] = gradient(x[c], 0, c);
  if (has_label) d[label] = gradient(label_logit, 1, label);
}

TRIBUTARY_CLONES void PlainGradient(CrossEntropyCall call, CrossEntropyRow row,
                                    const float* x, int64_t label, float* d) {
  GradientOfPart<false>(call, row, 1.0f, x, label, d);
}

TRIBUTARY_CLONES void WeightedGradient(CrossEntropyCall call,
                                       CrossEntropyRow row, float weight,
                                       const float* x, int64_t label,
                                       float* d) {
  GradientOfPart<true>(call, row, weight, x, label, d);
}

TRIBUTARY_CLONES void BceBackward(int64_t n, const float* x, const float* t,
                                  float pos_weight, const float* weights,
                                  float scale, float* d) {
  if (weights == nullptr) {
    TRIBUTARY_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      d[i] = scale * BceGradient(x[i], t[i], pos_weight);
    }
    return;
  }
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    d[i] = scale * (weights[i] * BceGradient(x[i], t[i], pos_weight));
  }
}

TRIBUTARY_CLONES void SquaredErrors(int64_t n, const float* x, const float* t,
                                    float* loss) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) loss[i] = SquaredErrorLoss(x[i] - t[i]);
}

TRIBUTARY_CLONES void SquaredErrorsBackward(int64_t n, const float* x,
                                            const float* t, float scale,
                                            float* d) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    d[i] = scale * SquaredErrorGradient(x[i] - t[i]);
  }
}

}  // namespace

void CpuOps::CrossEntropy(int64_t rows, int64_t classes, const float* logits,
                          const int64_t* labels,
                          const CrossEntropyOptions& options, float scale,
                          float* row_loss, float* row_weight, float* d_logits) {
  const float count = static_cast<float>(classes);
  const float s = options.label_smoothing;
  CrossEntropyCall call{
      classes, options.class_weights, count, {1.0f - s, s / count}, scale};
  if (options.class_weights != nullptr) {
    call.weight_sum = SumOf(classes, options.class_weights);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = labels[r];
    float* d = d_logits == nullptr ? nullptr : d_logits + r * classes;
    float weight = 1;
    if (label == options.ignore_index) {
      weight = row_loss[r] = 0;
      if (d != nullptr) std::fill_n(d, classes, 0.0f);
    } else if (label < 0 || label >= classes) {
      weight = row_loss[r] = kNan;
      if (d != nullptr) std::fill_n(d, classes, kNan);
    } else if (options.class_weights != nullptr) {
      weight = options.class_weights[label];
      row_loss[r] = WeightedRow(call, logits + r * classes, label, d);
    } else {
      row_loss[r] = PlainRow(call, logits + r * classes, label, d);
    }
    if (row_weight != nullptr) row_weight[r] = weight;
  }
}

void CpuOps::CrossEntropyPart(int64_t rows, const ClassRange& range,
                              const float* logits, const int64_t* labels,
                              const float* class_weights, float* part) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = logits + r * range.count;
    const int64_t label = labels[r] - range.first;
    float* to = part + r * kCrossEntropyPart;
    if (class_weights == nullptr) {
      PlainPart(range.count, x, label, to);
    } else {
      WeightedPart(range.count, x, label, class_weights + range.first, to);
    }
  }
}

void CpuOps::CrossEntropyOfParts(int64_t rows, const ClassRange& range,
                                 const float* logits, const int64_t* labels,
                                 int ranks, const float* parts,
                                 const CrossEntropyOptions& options,
                                 float scale, float* row_loss,
                                 float* d_logits) {
  const float total = static_cast<float>(range.total);
  const float s = options.label_smoothing;
  const float* weights = options.class_weights;
  CrossEntropyCall call{
      range.count, nullptr, total, {1.0f - s, s / total}, scale};
  if (weights != nullptr) {
    call.class_weights = weights + range.first;
    call.weight_sum = SumOf(range.total, weights);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * range.count;
    if (labels[r] < 0 || labels[r] >= range.total) {
      row_loss[r] = kNan;
      if (d_logits != nullptr) std::fill_n(d_logits + at, range.count, kNan);
      continue;
    }
    const CrossEntropyRow row = JoinCrossEntropyParts(
        ranks, parts + r * kCrossEntropyPart, rows * kCrossEntropyPart);
    const float weight = weights == nullptr ? 1.0f : weights[labels[r]];
    row_loss[r] = CrossEntropyLoss(call.smoothing, weight * row.label_loss,
                                   row.smooth_loss);
    if (d_logits == nullptr) continue;
    const int64_t label = labels[r] - range.first;
    if (weights == nullptr) {
      PlainGradient(call, row, logits + at, label, d_logits + at);
    } else {
      WeightedGradient(call, row, weight, logits + at, label, d_logits + at);
    }
  }
}

void CpuOps::BceWithLogits(int64_t n, const float* logits, const float* targets,
                           float pos_weight, const float* weights, float scale,
                           float* loss, float* d_logits) {
  for (int64_t i = 0; i < n; ++i) {
    const float weight = weights == nullptr ? 1.0f : weights[i];
    loss[i] = weight * BceLoss(logits[i], targets[i], pos_weight);
  }
  if (d_logits == nullptr) return;
  BceBackward(n, logits, targets, pos_weight, weights, scale, d_logits);
}

void CpuOps::SquaredError(int64_t n, const float* prediction,
                          const float* targets, float scale, float* loss,
                          float* d_prediction) {
  SquaredErrors(n, prediction, targets, loss);
  if (d_prediction == nullptr) return;
  SquaredErrorsBackward(n, prediction, targets, scale, d_prediction);
}

}  // namespace tributary
