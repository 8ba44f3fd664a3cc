// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "common/job/job_options.h"
#include "common/job/sources/source_kind.h"
#include "common/job/validate/validate.h"

namespace tributary {
namespace {

// As in Evaluation::Metrics (common/evaluation/evaluation.h).
std::vector<std::string> MetricsOf(const v1::JobSpec& job) {
  const v1::LossSpec& loss = job.training().loss();
  if (loss.has_mse()) return {"loss", "r2"};
  if (loss.has_bce_with_logits()) return {"accuracy", "auc", "loss"};
  const bool sequences = SequenceLengthOf(job.data().train()) > 0;
  const v1::CrossEntropySpec& classes = loss.cross_entropy();
  const bool plain = !classes.balanced() && classes.class_weights().empty() &&
                     classes.label_smoothing() == 0;
  if (sequences && plain) return {"accuracy", "loss", "perplexity"};
  return {"accuracy", "loss"};
}

// A decision by an evaluation needs all ranks to be at the evaluated step.
absl::Status ValidateDecision(const Places& places, const v1::JobSpec& job,
                              const std::string& field) {
  const SyncTraits sync = SyncTraitsOf(job);
  if (sync.mode == ApplyMode::kBackup) {
    return places.Error(field, field,
                        " cannot be combined with backup_workers, with which a "
                        "worker may skip the evaluated step");
  }
  if (sync.updates_locally && job.evaluation().keep_best()) {
    return places.Error(
        field, field,
        " cannot be combined with local_sgd, whose servers have "
        "the weights of whole rounds alone");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateEvaluation(const Places& places, const v1::JobSpec& job) {
  if (!job.has_evaluation()) return absl::OkStatus();
  const v1::EvaluationSpec& evaluation = job.evaluation();
  if (!job.data().has_test() && !job.data().has_validation()) {
    return places.Error("evaluation",
                        "evaluation wants data.validation or data.test, on "
                        "which the job evaluates");
  }
  const std::vector<std::string> metrics = MetricsOf(job);
  if (!absl::c_linear_search(metrics, evaluation.metric())) {
    return places.Error("evaluation.metric", "evaluation.metric must be ",
                        absl::StrJoin(metrics, " or "), " in this job, got ",
                        evaluation.metric());
  }
  if (evaluation.keep_best()) {
    return ValidateDecision(places, job, "evaluation.keep_best");
  }
  if (evaluation.stop_after() > 0) {
    return ValidateDecision(places, job, "evaluation.stop_after");
  }
  return absl::OkStatus();
}

}  // namespace tributary
