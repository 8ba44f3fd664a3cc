// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/scalar_math.h"

namespace tributary {

// Cross entropy of a row with label smoothing s over C classes, as PyTorch
// defines it. It combines the label's loss and the smoothed loss:
//   (1 - s) w[label] (-log p[label]) + s / C sum_c w[c] (-log p[c]).
struct Smoothing {
  float label = 1;   // 1 - s
  float smooth = 0;  // s / C
};

TRIBUTARY_HOST_DEVICE inline float CrossEntropyLoss(Smoothing s,
                                                    float label_loss,
                                                    float smooth_loss) {
  return s.label * label_loss + s.smooth * smooth_loss;
}

// The derivative of CrossEntropyLoss by one logit of the row. p: the softmax of
// that logit; hit: 1 for the label's class, else 0; weight: the weight of the
// label's class; class_weight: the weight of this class; weight_sum: the sum
// over all classes.
TRIBUTARY_HOST_DEVICE inline float CrossEntropyGradient(Smoothing s, float p,
                                                        float hit, float weight,
                                                        float class_weight,
                                                        float weight_sum) {
  return s.label * (weight * (p - hit)) +
         s.smooth * (p * weight_sum - class_weight);
}

// One rank's share of a row whose logits are split by class over ranks: its
// largest logit, the sum of exp(x - largest), the label's logit (0 when another
// rank has it), the sum of w (x - largest), and the sum of w, where w is the
// weight of a class; 1 without weights.
inline constexpr int kCrossEntropyPart = 5;
enum CrossEntropyPartField {
  kPartLargest,
  kPartSum,
  kPartLabel,
  kPartTotal,
  kPartWeights
};

// The joined values of the whole row, relative to its largest logit.
struct CrossEntropyRow {
  float largest = 0;
  double sum = 0;         // of exp(x - largest)
  float label_loss = 0;   // -log p[label]
  float smooth_loss = 0;  // sum over the classes of -w log p
};

// Joins the parts of all ranks. The part of rank r starts at parts[r * stride].
// Parts are added in rank order, so that every rank gets the same bits.
TRIBUTARY_HOST_DEVICE inline CrossEntropyRow JoinCrossEntropyParts(
    int ranks, const float* parts, int64_t stride) {
  CrossEntropyRow row;
  row.largest = parts[kPartLargest];
  for (int r = 1; r < ranks; ++r) {
    const float largest = parts[r * stride + kPartLargest];
    row.largest = largest > row.largest ? largest : row.largest;
  }
  float label_logit = 0;
  double logits = 0, weights = 0;  // logits: the sum of w (x - largest)
  for (int r = 0; r < ranks; ++r) {
    const float* part = parts + r * stride;
    const float below = part[kPartLargest] - row.largest;
    row.sum += double{part[kPartSum]} * double{Exp(below)};
    label_logit += part[kPartLabel];
    logits += double{part[kPartTotal]} + double{part[kPartWeights]} * below;
    weights += double{part[kPartWeights]};
  }
  const double log_sum = log(row.sum);
  row.label_loss = static_cast<float>(log_sum) - (label_logit - row.largest);
  row.smooth_loss = static_cast<float>(weights * log_sum - logits);
  return row;
}

// -pos_weight t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) without overflow.
TRIBUTARY_HOST_DEVICE inline float BceLoss(float x, float target,
                                           float pos_weight) {
  const float negative = x < 0.0f ? -x : 0.0f;
  const float softplus = log1pf(Exp(-fabsf(x))) + negative;  // log(1 + e^-x)
  const float scale = 1.0f + (pos_weight - 1.0f) * target;
  return (1.0f - target) * x + scale * softplus;
}

TRIBUTARY_HOST_DEVICE inline float BceGradient(float x, float target,
                                               float pos_weight) {
  // sigmoid(-x) and sigmoid(x) from one exponential that cannot overflow.
  const float e = Exp(-fabsf(x));
  const float small = e / (1.0f + e);
  const float large = 1.0f / (1.0f + e);
  const float p = x < 0.0f ? small : large;
  const float q = x < 0.0f ? large : small;
  return (1.0f - target) * p - pos_weight * target * q;
}

TRIBUTARY_HOST_DEVICE inline float SquaredErrorLoss(float difference) {
  return difference * difference;
}

TRIBUTARY_HOST_DEVICE inline float SquaredErrorGradient(float difference) {
  return 2.0f * difference;
}

}  // namespace tributary
