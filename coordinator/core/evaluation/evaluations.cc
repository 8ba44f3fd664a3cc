// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/evaluations.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/evaluation/evaluation.h"
#include "common/status/status_macros.h"
#include "coordinator/core/members/name_list.h"

namespace tributary {

std::string EvaluatedSet(const v1::JobSpec& job) {
  return job.data().has_validation() ? "validation" : "test";
}

std::vector<EvaluationRecord> EvaluationsOf(const SavedEvaluations& saved,
                                            const std::string& set) {
  std::vector<EvaluationRecord> records;
  for (const v1::EvaluationState& one : saved) {
    EvaluationRecord& record = records.emplace_back();
    record.set = set;
    record.step = one.step();
    record.epoch = one.epoch();
    record.samples = one.samples();
    record.metrics.insert(one.metrics().begin(), one.metrics().end());
  }
  return records;
}

void SaveEvaluation(const EvaluationRecord& record, SavedEvaluations* saved) {
  v1::EvaluationState* one = saved->Add();
  one->set_step(record.step);
  one->set_epoch(record.epoch);
  one->set_samples(record.samples);
  for (const auto& [name, value] : record.metrics) {
    (*one->mutable_metrics())[name] = value;
  }
}

absl::Status Evaluations::Add(const v1::ReportEvaluationRequest& request) {
  if (request.step() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an evaluation's step must not be negative, got ", request.step()));
  }
  if (request.step() <= latest_.step) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(Evaluation(loss_).Add(request.part()));
  if (request.step() <= given_up_step_) return absl::OkStatus();
  Parts& parts = open_[request.step()];
  parts.resize(num_workers_);
  std::optional<v1::ReportEvaluationRequest>& part = parts[request.rank()];
  if (!part) part = request;
  const bool complete = std::all_of(
      parts.begin(), parts.end(), [](const auto& p) { return p.has_value(); });
  if (!complete) {
    if (open_.size() > kMaxOpen) GiveUpOldest();
    return absl::OkStatus();
  }
  TRIBUTARY_ASSIGN_OR_RETURN(EvaluationRecord record, AddUp(parts));
  latest_ = record;
  complete_.push_back(record);
  records_.push_back(std::move(record));
  // The missing parts of earlier evaluations will not arrive any more.
  open_.erase(open_.begin(), open_.upper_bound(request.step()));
  return absl::OkStatus();
}

void Evaluations::GiveUpOldest() {
  const auto& [step, parts] = *open_.begin();
  if (++given_up_ == next_told_) {
    next_told_ *= 10;
    std::vector<uint32_t> missing;
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      if (!parts[rank]) missing.push_back(static_cast<uint32_t>(rank));
    }
    notices_.push_back(absl::StrCat(
        "the evaluation after step ", step, " is given up: ", RankList(missing),
        missing.size() == 1 ? " has" : " have", " not reported while ",
        kMaxOpen, " later ones were begun",
        given_up_ > 1 ? absl::StrCat("; ", given_up_, " are given up by now")
                      : ""));
  }
  given_up_step_ = step;
  open_.erase(open_.begin());
}

void Evaluations::Restore(const EvaluationRecord& complete) {
  if (complete.step > latest_.step) latest_ = complete;
}

absl::StatusOr<EvaluationRecord> Evaluations::AddUp(const Parts& parts) const {
  EvaluationRecord record;
  Evaluation evaluation(loss_);
  for (const auto& part : parts) {
    TRIBUTARY_RETURN_IF_ERROR(evaluation.Add(part->part()));
    record.samples += part->part().samples();
  }
  record.set = set_;
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
