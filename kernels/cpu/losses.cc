#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/loss_math.h"

namespace tributary {
namespace {

// What the rows of one call share.
struct CrossEntropyCall {
  int64_t classes;
  const float* class_weights;
  float weight_sum;  // over all classes
  float smoothing;
  float scale;
};

TRIBUTARY_INLINE double ExpSum(int64_t n, const float* x, float largest) {
  return LaneSum(n, [=](int64_t c) { return double{Exp(x[c] - largest)}; });
}

// Returns the row's loss, label in range; d may be null and may be x.
TRIBUTARY_CLONES float CrossEntropyRow(CrossEntropyCall call, const float* x,
                                       int64_t label, float weight, float* d) {
  const int64_t classes = call.classes;
  const float* class_weights = call.class_weights;
  const float largest = LaneMax(classes, x);
  const double sum = ExpSum(classes, x, largest);
  const float log_sum = static_cast<float>(std::log(sum));
  const float label_loss = weight * (log_sum - (x[label] - largest));
  float smooth_loss = 0;
  if (call.smoothing > 0) {
    smooth_loss = static_cast<float>(LaneSum(classes, [=](int64_t c) {
      const float w = class_weights == nullptr ? 1.0f : class_weights[c];
      return double{w} * double{log_sum - (x[c] - largest)};
    }));
  }
  const float count = static_cast<float>(classes);
  const float loss =
      CrossEntropyLoss(label_loss, smooth_loss, call.smoothing, count);
  if (d == nullptr) return loss;
  const float inverse = static_cast<float>(1.0 / sum);
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < classes; ++c) {
    const float p = Exp(x[c] - largest) * inverse;
    const float w = class_weights == nullptr ? 1.0f : class_weights[c];
    d[c] = call.scale * CrossEntropyGradient(p, c == label, weight, w,
                                             call.weight_sum, call.smoothing,
                                             count);
  }
  return loss;
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
  CrossEntropyCall call{classes, options.class_weights,
                        static_cast<float>(classes), options.label_smoothing,
                        scale};
  if (options.class_weights != nullptr) {
    call.weight_sum = static_cast<float>(LaneSum(
        classes, [&](int64_t c) { return double{options.class_weights[c]}; }));
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
    } else {
      if (options.class_weights != nullptr) {
        weight = options.class_weights[label];
      }
      row_loss[r] =
          CrossEntropyRow(call, logits + r * classes, label, weight, d);
    }
    if (row_weight != nullptr) row_weight[r] = weight;
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
