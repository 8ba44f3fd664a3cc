#include "server/coordinator/evaluations.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/metrics/evaluation.h"
#include "common/status_macros.h"

namespace tributary {

absl::Status Evaluations::Add(const v1::ReportEvaluationRequest& request) {
  if (request.step() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an evaluation's step must not be negative, got ", request.step()));
  }
  if (request.step() <= latest_.step) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(Evaluation(loss_).Add(request.part()));
  const auto found = open_.find(request.step());
  if (found == open_.end() && open_.size() >= kMaxOpen) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "an evaluation of step ", request.step(), " while ", open_.size(),
        " wait for parts, the first of step ", open_.begin()->first));
  }
  Parts& parts = open_[request.step()];
  parts.resize(num_workers_);
  std::optional<v1::ReportEvaluationRequest>& part = parts[request.rank()];
  if (!part) part = request;
  const bool complete = std::all_of(
      parts.begin(), parts.end(), [](const auto& p) { return p.has_value(); });
  if (!complete) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(EvaluationRecord record, AddUp(parts));
  latest_ = record;
  records_.push_back(std::move(record));
  // What an earlier evaluation still waits for will not come any more.
  open_.erase(open_.begin(), open_.upper_bound(request.step()));
  return absl::OkStatus();
}

absl::StatusOr<EvaluationRecord> Evaluations::AddUp(const Parts& parts) const {
  EvaluationRecord record;
  Evaluation evaluation(loss_);
  for (const auto& part : parts) {
    TRIBUTARY_RETURN_IF_ERROR(evaluation.Add(part->part()));
    record.samples += part->part().samples();
  }
  record.step = parts[0]->step();
  record.epoch = parts[0]->epoch();
  record.metrics = evaluation.Metrics();
  return record;
}

std::vector<EvaluationRecord> Evaluations::Take(int64_t step) {
  const auto end =
      std::find_if(records_.begin(), records_.end(),
                   [step](const auto& record) { return record.step > step; });
  std::vector<EvaluationRecord> taken(std::make_move_iterator(records_.begin()),
                                      std::make_move_iterator(end));
  records_.erase(records_.begin(), end);
  return taken;
}

}  // namespace tributary
