// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/loss.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"
#include "kernels/loss_math.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

Loss::Loss(Kind kind, const Options& options)
    : kind_(kind),
      ops_(options.ops),
      max_rows_(options.max_rows),
      outputs_(options.outputs),
      positions_(options.positions),
      values_per_row_(kind == Kind::kCrossEntropy
                          ? options.positions
                          : options.outputs * options.positions),
      cut_(options.cut) {}

absl::StatusOr<std::unique_ptr<Loss>> Loss::Create(const v1::LossSpec& spec,
                                                   const Options& options) {
  TRIBUTARY_CHECK(options.ops != nullptr && options.max_rows > 0 &&
                  options.outputs > 0 && options.positions > 0);
  std::unique_ptr<Loss> loss;
  switch (spec.kind_case()) {
    case v1::LossSpec::kCrossEntropy: {
      const double smoothing = spec.cross_entropy().label_smoothing();
      if (!(smoothing >= 0 && smoothing <= 1)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "label_smoothing must be from 0 to 1, got ", smoothing));
      }
      loss.reset(new Loss(Kind::kCrossEntropy, options));
      loss->label_smoothing_ = static_cast<float>(smoothing);
      break;
    }
    case v1::LossSpec::kBceWithLogits: {
      const v1::BceWithLogitsSpec& bce = spec.bce_with_logits();
      const double pos_weight = bce.has_pos_weight() ? bce.pos_weight() : 1;
      if (!(pos_weight > 0 && std::isfinite(pos_weight))) {
        return absl::InvalidArgumentError(absl::StrCat(
            "pos_weight must be positive and finite, got ", pos_weight));
      }
      loss.reset(new Loss(Kind::kBceWithLogits, options));
      loss->pos_weight_ = static_cast<float>(pos_weight);
      break;
    }
    case v1::LossSpec::kMse:
      loss.reset(new Loss(Kind::kSquaredError, options));
      break;
    case v1::LossSpec::KIND_NOT_SET:
      return absl::InvalidArgumentError(
          "loss wants one of cross_entropy, bce_with_logits and mse, got none");
  }
  if (options.cut.group != nullptr && loss->kind_ != Kind::kCrossEntropy) {
    return absl::InvalidArgumentError(
        "only cross_entropy takes logits that are cut by classes");
  }
  TRIBUTARY_RETURN_IF_ERROR(loss->Allocate());
  TRIBUTARY_RETURN_IF_ERROR(loss->TakeClassWeights(spec.cross_entropy()));
  return loss;
}

absl::Status Loss::TakeClassWeights(const v1::CrossEntropySpec& spec) {
  if (spec.balanced()) {
    return absl::InvalidArgumentError(
        "cross_entropy wants class_weights in place of balanced");
  }
  if (spec.class_weights().empty()) return absl::OkStatus();
  if (spec.class_weights_size() != classes()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "class_weights has ", spec.class_weights_size(),
        " values, wanted one for each of the model's ", classes(), " outputs"));
  }
  const std::vector<float> weights(spec.class_weights().begin(),
                                   spec.class_weights().end());
  for (float weight : weights) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "class_weights must be finite and not negative, got ", weight));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(class_weights_,
                             DeviceArray<float>::Allocate(ops_, classes()));
  ops_->CopyIn(class_weights_.data(), weights.data(),
               weights.size() * sizeof(float));
  return SynchronizeDevice(*ops_);  // `weights` must live until here
}

absl::Status Loss::Allocate() {
  TRIBUTARY_ASSIGN_OR_RETURN(
      d_logits_,
      DeviceArray<float>::Allocate(ops_, max_rows_ * positions_ * outputs_));
  const int64_t values = max_rows_ * values_per_row_;
  TRIBUTARY_ASSIGN_OR_RETURN(losses_,
                             DeviceArray<float>::Allocate(ops_, values));
  host_losses_.resize(values);
  if (cut_.group != nullptr) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        parts_, DeviceArray<float>::Allocate(
                    ops_, cut_.group->size() * values * kCrossEntropyPart));
  }
  if (ops_->is_host()) return absl::OkStatus();
  if (kind_ == Kind::kCrossEntropy) {
    TRIBUTARY_ASSIGN_OR_RETURN(labels_,
                               DeviceArray<int64_t>::Allocate(ops_, values));
  } else {
    TRIBUTARY_ASSIGN_OR_RETURN(values_,
                               DeviceArray<float>::Allocate(ops_, values));
  }
  return absl::OkStatus();
}

absl::Status Loss::CheckTargets(const LossTargets& targets,
                                int64_t rows) const {
  if (kind_ != Kind::kCrossEntropy) {
    if (rows > 0 && targets.values == nullptr) {
      return absl::InvalidArgumentError(
          "the loss wants a number for each output, the data has classes");
    }
    return absl::OkStatus();
  }
  if (rows > 0 && targets.labels == nullptr) {
    return absl::InvalidArgumentError(
        "cross_entropy wants a class for each sample, the data has numbers");
  }
  for (int64_t r = 0; r < rows * positions_; ++r) {
    if (targets.labels[r] < 0 || targets.labels[r] >= classes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cross_entropy wants labels from 0 to ", classes() - 1,
          ", one for each output of the model; got ", targets.labels[r]));
    }
  }
  return absl::OkStatus();
}

// Each rank sends a few numbers per row about its classes, so that the logits
// need not be gathered.
void Loss::ComputeCut(const float* logits, const int64_t* labels, int64_t count,
                      float factor, float* d_logits) {
  TensorGroup& group = *cut_.group;
  std::vector<int64_t> bounds;
  for (int r = 0; r <= group.size(); ++r) {
    bounds.push_back(r * count * kCrossEntropyPart);
  }
  ops_->CrossEntropyPart(count, cut_.range, logits, labels,
                         class_weights_.data(),
                         parts_.data() + bounds[group.rank()]);
  group.AllGather(bounds, parts_.data());
  ops_->CrossEntropyOfParts(count, cut_.range, logits, labels, group.size(),
                            parts_.data(),
                            {.label_smoothing = label_smoothing_,
                             .class_weights = class_weights_.data()},
                            factor, losses_.data(), d_logits);
}

absl::Status Loss::Compute(const float* logits, const LossTargets& targets,
                           int64_t rows, double scale, float* d_logits) {
  TRIBUTARY_CHECK(rows >= 0 && rows <= max_rows_);
  TRIBUTARY_RETURN_IF_ERROR(CheckTargets(targets, rows));
  rows_ = rows;
  const int64_t* labels = targets.labels;
  const float* values = targets.values;
  const int64_t count = rows * values_per_row_;
  if (!ops_->is_host()) {
    if (kind_ == Kind::kCrossEntropy) {
      ops_->CopyIn(labels_.data(), labels, count * sizeof(int64_t));
      labels = labels_.data();
    } else {
      ops_->CopyIn(values_.data(), values, count * sizeof(float));
      values = values_.data();
    }
  }
  const float factor =
      static_cast<float>(scale / static_cast<double>(values_per_row_));
  switch (kind_) {
    case Kind::kCrossEntropy:
      if (cut_.group != nullptr) {
        ComputeCut(logits, labels, count, factor, d_logits);
        return cut_.group->status();
      }
      ops_->CrossEntropy(count, outputs_, logits, labels,
                         {.label_smoothing = label_smoothing_,
                          .class_weights = class_weights_.data()},
                         factor, losses_.data(), /*row_weight=*/nullptr,
                         d_logits);
      break;
    case Kind::kBceWithLogits:
      ops_->BceWithLogits(count, logits, values, pos_weight_,
                          /*weights=*/nullptr, factor, losses_.data(),
                          d_logits);
      break;
    case Kind::kSquaredError:
      ops_->SquaredError(count, logits, values, factor, losses_.data(),
                         d_logits);
      break;
  }
  return absl::OkStatus();
}

absl::Status Loss::Evaluate(const float* logits, const LossTargets& targets,
                            int64_t rows) {
  return Compute(logits, targets, rows, /*scale=*/1, /*d_logits=*/nullptr);
}

absl::StatusOr<const float*> Loss::Differentiate(const float* logits,
                                                 const LossTargets& targets,
                                                 int64_t rows, double scale) {
  TRIBUTARY_RETURN_IF_ERROR(
      Compute(logits, targets, rows, scale, d_logits_.data()));
  return d_logits_.data();
}

absl::StatusOr<double> Loss::Sum() {
  const int64_t count = rows_ * values_per_row_;
  ops_->CopyOut(host_losses_.data(), losses_.data(), count * sizeof(float));
  TRIBUTARY_RETURN_IF_ERROR(SynchronizeDevice(*ops_));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += host_losses_[i];
  return sum / static_cast<double>(values_per_row_);
}

}  // namespace tributary
