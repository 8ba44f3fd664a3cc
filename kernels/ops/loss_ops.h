// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

struct CrossEntropyOptions {
  float label_smoothing = 0;
  // Rows with this label have no loss and no gradient.
  int64_t ignore_index = -100;
  const float* class_weights = nullptr;  // [classes] or null
};

// The classes of one rank when logits are split by class: [first, first +
// count) of `total`.
struct ClassRange {
  int64_t first = 0;
  int64_t count = 0;
  int64_t total = 0;
};

// Losses of rows, and their gradients multiplied by `scale`.
class LossOps {
 public:
  virtual ~LossOps() = default;

  // logits: [rows, classes]; row_loss, labels: [rows]. d_logits may be null
  // (evaluation) or equal logits. row_weight, unless null, receives the row's
  // weight: its class weight, or 0 for an ignored row. A label that names no
  // class makes its row NaN.
  virtual void CrossEntropy(int64_t rows, int64_t classes, const float* logits,
                            const int64_t* labels,
                            const CrossEntropyOptions& options, float scale,
                            float* row_loss, float* row_weight,
                            float* d_logits) = 0;
  // Cross entropy of logits that are split by class over several ranks, in two
  // steps. logits: [rows, range.count]; labels number the classes of all ranks.
  // The first step computes this rank's part of each row: part: [rows,
  // kCrossEntropyPart] (loss_math.h). class_weights: [range.total] or null.
  virtual void CrossEntropyPart(int64_t rows, const ClassRange& range,
                                const float* logits, const int64_t* labels,
                                const float* class_weights, float* part) = 0;
  // The second step computes from the parts of all ranks the losses, with the
  // same bits on every rank, and this rank's gradients. parts: [ranks, rows,
  // kCrossEntropyPart]. options.class_weights: [range.total], or null in both
  // steps; ignore_index has no effect.
  virtual void CrossEntropyOfParts(int64_t rows, const ClassRange& range,
                                   const float* logits, const int64_t* labels,
                                   int ranks, const float* parts,
                                   const CrossEntropyOptions& options,
                                   float scale, float* row_loss,
                                   float* d_logits) = 0;
  // Both are elementwise. weights may be null.
  virtual void BceWithLogits(int64_t n, const float* logits,
                             const float* targets, float pos_weight,
                             const float* weights, float scale, float* loss,
                             float* d_logits) = 0;
  virtual void SquaredError(int64_t n, const float* prediction,
                            const float* targets, float scale, float* loss,
                            float* d_prediction) = 0;
};

}  // namespace tributary
