// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/evaluation/evaluation_decisions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/evaluation_steps.h"
#include "common/job/job_options.h"

namespace tributary {

EvaluationDecisions::EvaluationDecisions(JobState* state)
    : state_(*state),
      keeps_best_(state->options().job.evaluation().keep_best()),
      stop_after_(state->options().job.evaluation().stop_after()),
      best_(state->options().job.evaluation().metric()) {}

void EvaluationDecisions::Count(const EvaluationRecord& evaluation) {
  if (!entries_.empty() && evaluation.step <= entries_.back().evaluation.step) {
    return;
  }
  const EvaluationSteps due{
      .course = state_.plans().course(),
      .every = state_.options().job.evaluation().every_steps()};
  const bool counts = due.Includes(evaluation.step) ||
                      evaluation.step == state_.plans().total_steps();
  if (compares() && !due.course.empty() && counts) {
    best_.Add(evaluation.step, evaluation.metrics);
    newest_ = evaluation.step;
  }
  entries_.push_back(EntryOf(evaluation));
}

EvaluationDecisions::Entry EvaluationDecisions::EntryOf(
    const EvaluationRecord& evaluation) const {
  return {.evaluation = evaluation,
          .best_step = best_.step(),
          .best_value = best_.value(),
          .since_best = best_.since(),
          .newest = newest_};
}

void EvaluationDecisions::Add(const EvaluationRecord& evaluation) {
  Count(evaluation);
  if (decides()) StopIfDue();
}

void EvaluationDecisions::Save(int64_t step, SavedEvaluations* saved) const {
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), step,
      [](int64_t s, const Entry& e) { return s < e.evaluation.step; });
  if (after == entries_.begin()) return;
  const Entry& entry = *std::prev(after);
  SaveEvaluation(entry.evaluation, saved);
  if (!compares()) return;
  v1::EvaluationsDecided* const decided =
      saved->Mutable(saved->size() - 1)->mutable_decided();
  if (entry.best_step) decided->set_best_step(*entry.best_step);
  decided->set_best_value(entry.best_value);
  decided->set_since_best(entry.since_best);
  decided->set_newest_step(entry.newest);
  decided->set_metric(best_.metric());
  decided->set_basis(basis_);
}

void EvaluationDecisions::Restore(const std::vector<EvaluationRecord>& records,
                                  const SavedEvaluations& saved) {
  const std::vector<EvaluationRecord> known =
      EvaluationsOf(saved, EvaluatedSet(state_.options().job));
  auto next = records.begin();
  for (int i = 0; i < saved.size(); ++i) {
    for (; next != records.end() && next->step <= saved[i].step(); ++next) {
      Count(*next);
    }
    Count(known[static_cast<size_t>(i)]);
    const v1::EvaluationsDecided& decided = saved[i].decided();
    if (!compares()) continue;
    // A resumed run may compare by another metric, or for the first time. Then
    // the weights that it starts with are the first to compare.
    if (decided.metric() != best_.metric()) {
      other_metric_ = decided.has_best_step() ? decided.metric() : "";
      basis_ = decided.basis();
      const EvaluationRecord& record = known[static_cast<size_t>(i)];
      if (record.step == state_.options().start.step &&
          best_.step() != record.step) {
        best_.Add(record.step, record.metrics);
        newest_ = record.step;
        entries_.back() = EntryOf(record);
      }
      continue;
    }
    best_.Restore(decided.has_best_step()
                      ? std::optional<int64_t>(decided.best_step())
                      : std::nullopt,
                  decided.best_value(), decided.since_best());
    newest_ = decided.newest_step();
    basis_ = decided.basis();
    entries_.back() = EntryOf(known[static_cast<size_t>(i)]);
  }
  for (; next != records.end(); ++next) Count(*next);
}

void EvaluationDecisions::GoBack(int64_t step) {
  while (!entries_.empty() && entries_.back().evaluation.step > step) {
    entries_.pop_back();
  }
  const Entry kept = entries_.empty() ? Entry() : entries_.back();
  best_.Restore(kept.best_step, kept.best_value, kept.since_best);
  newest_ = kept.newest;
}

std::string EvaluationDecisions::SetBasis(uint32_t basis) {
  const std::string metric = std::exchange(other_metric_, "");
  const bool other = basis != 0 && basis_ != 0 && basis_ != basis;
  if (basis != 0) basis_ = basis;
  std::string notice;
  if (!metric.empty()) {
    notice = absl::StrCat("the best ", metric, " so far does not count: the ",
                          "job compares by ", best_.metric(), " now");
  } else if (other && best_.step()) {
    notice = absl::StrFormat(
        "the best %s so far, %.4g after step %d, does not count: model, loss, "
        "evaluated samples or preprocessing are others now",
        best_.metric(), best_.value(), *best_.step());
  }
  if (other && !entries_.empty()) {
    best_.Restore(std::nullopt, 0, 0);
    newest_ = 0;
    entries_.back() = EntryOf(entries_.back().evaluation);
  }
  return decides() ? notice : "";
}

// A resumed job has evaluations from before its first step as well.
void EvaluationDecisions::StopIfDue() {
  if (stop_after_ == 0 || best_.since() < stop_after_ ||
      newest_ < state_.options().start.step || state_.plan() == nullptr) {
    return;
  }
  const std::string best =
      best_.step() ? absl::StrFormat("; the best, %.4g, was after step %d",
                                     best_.value(), *best_.step())
                   : "";
  state_.steps().StopEarly(
      newest_,
      absl::StrCat("stops after step ", newest_, ": ", best_.since(),
                   " evaluations without a better ", best_.metric(), best));
}

bool EvaluationDecisions::AsksForCheckpoint(int64_t step) const {
  if (!keeps_best_ || best_.step() != step || state_.plan() == nullptr) {
    return false;
  }
  const v1::Plan& plan = *state_.plan();
  const v1::JobSpec& job = state_.options().job;
  return !plan.checkpoint_directory().empty() && step > plan.start_step() &&
         !(step == state_.steps().final_step() && job.checkpoint().at_end());
}

int64_t EvaluationDecisions::cut_step() const {
  const bool in_force = state_.plan() != nullptr &&
                        !state_.plans().wants_new() &&
                        state_.plan()->epoch() == cut_epoch_;
  return in_force ? cut_step_ : 0;
}

void EvaluationDecisions::Stand(int64_t step, int64_t now_micros) {
  StopIfDue();
  if (cut_step() >= step || !AsksForCheckpoint(step)) return;
  cut_step_ = step;
  cut_epoch_ = state_.plan()->epoch();
  cut_micros_ = now_micros;
}

absl::StatusOr<v1::AwaitEvaluationResponse> EvaluationDecisions::Answer(
    int64_t step, bool complete, int64_t now_micros) const {
  if (!complete) {
    return absl::DeadlineExceededError(
        absl::StrCat("waits for other ranks' evaluation after step ", step));
  }
  v1::AwaitEvaluationResponse response;
  if (const auto stop = state_.steps().stop().get();
      stop && state_.steps().stop().stopped_early()) {
    response.set_stop_step(*stop);
  }
  if (cut_step() != step) return response;
  if (!state_.membership().ServersHaveCut(cut_step_) &&
      now_micros < cut_micros_ + kSnapshotMicros) {
    return absl::DeadlineExceededError(absl::StrCat(
        "waits for the servers' snapshots of the best weights, those after "
        "step ",
        step));
  }
  response.set_checkpoint(true);
  return response;
}

}  // namespace tributary
