// SPDX-License-Identifier: Apache-2.0
#include "common/evaluation/evaluation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/evaluation/area_under_curve.h"
#include "common/evaluation/variation.h"

namespace tributary {
namespace {

absl::Status Check(const v1::LossSpec& loss, const v1::EvaluationPart& part) {
  const uint64_t outputs =
      part.samples() == 0 ? 0 : part.values() / part.samples();
  if (part.values() != part.samples() * outputs ||
      (outputs == 0) != (part.samples() == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an evaluation of ", part.samples(), " samples cannot have compared ",
        part.values(), " values"));
  }
  if (part.correct() > part.values()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an evaluation of ", part.values(), " values says that ",
                     part.correct(), " are right"));
  }
  const uint64_t scores = loss.has_bce_with_logits() ? part.values() : 0;
  if (static_cast<uint64_t>(part.scores_size()) != scores ||
      part.targets().size() != scores) {
    return absl::InvalidArgumentError(
        absl::StrCat("an evaluation of ", part.values(), " values wants ",
                     scores, " scores and targets, got ", part.scores_size(),
                     " scores and ", part.targets().size(), " targets"));
  }
  const auto is_binary = [](char target) { return target == 0 || target == 1; };
  if (!std::all_of(part.targets().begin(), part.targets().end(), is_binary)) {
    return absl::InvalidArgumentError(
        "an evaluation wants targets of 0 or 1, got others");
  }
  if (part.target_variation() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an evaluation's target_variation must not be negative, got ",
        part.target_variation()));
  }
  return absl::OkStatus();
}

Variation TargetsOf(const v1::EvaluationPart& part) {
  return {part.values(), part.target_mean(), part.target_variation()};
}

// Whether the loss is the mean of -ln p of the right classes, p being the
// model's probability.
bool IsPlain(const v1::CrossEntropySpec& spec) {
  return !spec.balanced() && spec.class_weights().empty() &&
         spec.label_smoothing() == 0;
}

}  // namespace

absl::Status Evaluation::Add(const v1::EvaluationPart& part) {
  if (absl::Status status = Check(loss_, part); !status.ok()) return status;
  if (part.samples() > 0 && sum_.samples() > 0 &&
      part.values() / part.samples() != sum_.values() / sum_.samples()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an evaluation compared ", part.values() / part.samples(),
                     " values a sample, the parts before it ",
                     sum_.values() / sum_.samples()));
  }
  Variation targets = TargetsOf(sum_);
  targets.Add(TargetsOf(part));
  sum_.set_target_mean(targets.mean);
  sum_.set_target_variation(targets.squares);
  sum_.set_samples(sum_.samples() + part.samples());
  sum_.set_values(sum_.values() + part.values());
  sum_.set_loss_sum(sum_.loss_sum() + part.loss_sum());
  sum_.set_correct(sum_.correct() + part.correct());
  sum_.set_error_square_sum(sum_.error_square_sum() + part.error_square_sum());
  sum_.mutable_scores()->MergeFrom(part.scores());
  sum_.mutable_targets()->append(part.targets());
  return absl::OkStatus();
}

std::map<std::string, double> Evaluation::Metrics() const {
  std::map<std::string, double> metrics;
  if (sum_.samples() == 0) return metrics;
  const double values = static_cast<double>(sum_.values());
  metrics["loss"] = sum_.loss_sum() / static_cast<double>(sum_.samples());
  if (loss_.has_mse()) {
    if (sum_.target_variation() > 0) {
      metrics["r2"] = 1 - sum_.error_square_sum() / sum_.target_variation();
    }
    return metrics;
  }
  // A program whose job names no loss need not count right answers. If it has
  // counted none, there is no accuracy.
  const bool is_known = loss_.kind_case() != v1::LossSpec::KIND_NOT_SET;
  if (!is_known && sum_.correct() == 0) return metrics;
  metrics["accuracy"] = static_cast<double>(sum_.correct()) / values;
  if (loss_.has_cross_entropy() && IsPlain(loss_.cross_entropy()) &&
      sum_.values() > sum_.samples()) {
    metrics["perplexity"] = std::exp(metrics["loss"]);  // for sequences
  }
  if (loss_.has_bce_with_logits()) {
    const auto positives =
        std::count(sum_.targets().begin(), sum_.targets().end(), 1);
    const bool both =
        positives > 0 && positives < static_cast<int64_t>(sum_.values());
    if (both) metrics["auc"] = AreaUnderCurve(sum_.scores(), sum_.targets());
  }
  return metrics;
}

}  // namespace tributary
