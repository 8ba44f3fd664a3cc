// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/evaluator.h"

#include <vector>

#include "common/evaluation/variation.h"
#include "common/status/status_macros.h"
#include "worker/train/model/decided_class.h"

namespace tributary {
namespace {

void AddClasses(const EvaluationBatch& batch, const std::vector<float>& logits,
                int64_t outputs, v1::EvaluationPart* part) {
  uint64_t correct = 0;
  const int64_t labels = static_cast<int64_t>(logits.size()) / outputs;
  part->set_values(part->values() + labels);
  for (int64_t r = 0; r < labels; ++r) {
    const absl::Span<const float> row(logits.data() + r * outputs, outputs);
    correct += DecidedClass(row) == batch.targets.labels[r];
  }
  part->set_correct(part->correct() + correct);
}

// Does the same as AddClasses, by the rule of DecidedClass, when each rank has
// only some of the classes. The rank with the label shares its logit; a row is
// correct if no rank has a class that beats it.
absl::Status AddCutClasses(const EvaluationBatch& batch,
                           const std::vector<float>& logits,
                           const OutputCut& cut, v1::EvaluationPart* part) {
  const ClassRange& range = cut.range;
  const int64_t labels = static_cast<int64_t>(logits.size()) / range.count;
  std::vector<float> of_label(labels), beaten(labels);
  for (int64_t r = 0; r < labels; ++r) {
    const int64_t label = batch.targets.labels[r] - range.first;
    if (label < 0 || label >= range.count) continue;
    of_label[r] = logits[r * range.count + label];
  }
  cut.group->AllReduceOnHost(labels, of_label.data());
  for (int64_t r = 0; r < labels; ++r) {
    const int64_t label = batch.targets.labels[r] - range.first;
    const float* row = logits.data() + r * range.count;
    for (int64_t c = 0; c < range.count; ++c) {
      const bool wins =
          c < label ? of_label[r] > row[c] : of_label[r] >= row[c];
      if (!wins) beaten[r] = 1;
    }
  }
  cut.group->AllReduceOnHost(labels, beaten.data());
  part->set_values(part->values() + labels);
  for (const float by : beaten) {
    part->set_correct(part->correct() + (by == 0 ? 1 : 0));
  }
  return cut.group->status();
}

void AddBinary(const std::vector<float>& logits, const float* targets,
               v1::EvaluationPart* part) {
  uint64_t correct = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool positive = targets[i] >= 0.5f;
    correct += DecidedOfTwo(logits[i]) == (positive ? 1 : 0);
    part->add_scores(logits[i]);
    part->mutable_targets()->push_back(positive ? 1 : 0);
  }
  part->set_values(part->values() + logits.size());
  part->set_correct(part->correct() + correct);
}

void AddNumbers(const std::vector<float>& predictions, const float* targets,
                v1::EvaluationPart* part) {
  Variation variation{part->values(), part->target_mean(),
                      part->target_variation()};
  double error_square_sum = 0;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double target = targets[i];
    const double error = predictions[i] - target;
    variation.Add(target);
    error_square_sum += error * error;
  }
  part->set_values(variation.count);
  part->set_target_mean(variation.mean);
  part->set_target_variation(variation.squares);
  part->set_error_square_sum(part->error_square_sum() + error_square_sum);
}

// logits: [rows, positions, outputs] in host memory.
absl::Status AddBatch(const v1::LossSpec& spec, const EvaluationBatch& batch,
                      const std::vector<float>& logits, int64_t outputs,
                      const OutputCut& cut, v1::EvaluationPart* part) {
  part->set_samples(part->samples() + batch.rows);
  if (cut.group != nullptr) return AddCutClasses(batch, logits, cut, part);
  if (spec.has_cross_entropy()) {
    AddClasses(batch, logits, outputs, part);
    return absl::OkStatus();
  }
  if (spec.has_bce_with_logits()) {
    AddBinary(logits, batch.targets.values, part);
  } else {
    AddNumbers(logits, batch.targets.values, part);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::EvaluationPart> EvaluateModel(
    Ops* ops, Model* model, Loss* loss, const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch) {
  return EvaluateOutputs(
      ops, model->output_shape(), loss, spec, next_batch,
      [model](const EvaluationBatch& batch) -> absl::StatusOr<const float*> {
        const float* output =
            model->Forward(batch.features, batch.rows, ForwardContext());
        TRIBUTARY_RETURN_IF_ERROR(model->status());
        return output;
      });
}

absl::StatusOr<v1::EvaluationPart> EvaluateOutputs(
    Ops* ops, const Shape& output_shape, Loss* loss, const v1::LossSpec& spec,
    absl::FunctionRef<absl::StatusOr<EvaluationBatch>()> next_batch,
    absl::FunctionRef<absl::StatusOr<const float*>(const EvaluationBatch&)>
        forward) {
  v1::EvaluationPart part;
  std::vector<float> logits;
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const EvaluationBatch batch, next_batch());
    if (batch.rows == 0) return part;
    TRIBUTARY_ASSIGN_OR_RETURN(const float* output, forward(batch));
    TRIBUTARY_RETURN_IF_ERROR(
        loss->Evaluate(output, batch.targets, batch.rows));
    logits.resize(batch.rows * NumElements(output_shape));
    ops->CopyOut(logits.data(), output, logits.size() * sizeof(float));
    TRIBUTARY_ASSIGN_OR_RETURN(const double loss_sum, loss->Sum());
    part.set_loss_sum(part.loss_sum() + loss_sum);
    TRIBUTARY_RETURN_IF_ERROR(
        AddBatch(spec, batch, logits, output_shape.back(), loss->cut(), &part));
  }
}

}  // namespace tributary
