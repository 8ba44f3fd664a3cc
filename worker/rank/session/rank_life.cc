// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/rank_life.h"

#include "common/base/mutation.h"
#include "common/checkpoint/restore.h"

namespace tributary {
namespace {

// Answers to wait for: the first may answer a heartbeat sent before the error.
constexpr int64_t kNewsAnswers = 2;

bool JobIsOver(const MemberState& state) {
  return !state.end().ok() || state.phase() == v1::JOB_PHASE_DONE;
}

bool PlanIsOver(const MemberState& state, uint64_t epoch) {
  return JobIsOver(state) || state.newest_plan() > epoch;
}

}  // namespace

void RankLife::Enter(Phase phase, const absl::Status& status) {
  phase_ = phase;
  status_ = status;
  acting_ = false;
}

void RankLife::Declared(const absl::Status& status) {
  Enter(status.ok() ? Phase::kPlanning : Phase::kEnding, status);
}

void RankLife::Planned(const absl::Status& status, uint64_t epoch) {
  Enter(status.ok() ? Phase::kTraining : Phase::kEnding, status);
  if (status.ok()) epoch_ = epoch;
}

void RankLife::Trained(const absl::Status& status) {
  Enter(status.ok()            ? Phase::kFinished
        : IsUnreadable(status) ? Phase::kUnreadable
                               : Phase::kBroken,
        status);
}

void RankLife::Replanned(const absl::Status& status) {
  Enter(status.ok() ? Phase::kPlanning : Phase::kEnding,
        status.ok() ? status_ : status);
}

RankLife::Act RankLife::Next(MemberState* state, int64_t now_micros) {
  if (acting_) {
    return phase_ == Phase::kTraining && PlanIsOver(*state, epoch_)
               ? Act::kCancel
               : Act::kWait;
  }
  const Act act = Decide(state, now_micros);
  acting_ = act != Act::kWait && act != Act::kGiveWeights;
  return act;
}

RankLife::Act RankLife::Decide(MemberState* state, int64_t now_micros) {
  switch (phase_) {
    case Phase::kDeclaring:
      return Act::kDeclareModel;
    case Phase::kPlanning:
      return Act::kGetPlan;
    case Phase::kTraining:
      return PlanIsOver(*state, epoch_) ? DecideUnderPlan(state, now_micros)
                                        : Act::kTrain;
    case Phase::kUnreadable:
      return Act::kReportUnreadable;
    case Phase::kFinished:
    case Phase::kBroken:
    case Phase::kAwaitingNews:
      return DecideUnderPlan(state, now_micros);
    case Phase::kEnding:
      break;
  }
  // The job's end explains more than the error that it caused here.
  if (!status_.ok() && !state->end().ok()) status_ = state->end();
  return status_.ok() || !state->end().ok() ? Act::kEnd : Act::kFail;
}

RankLife::Act RankLife::DecideUnderPlan(MemberState* state,
                                        int64_t now_micros) {
  if (JobIsOver(*state)) {
    Enter(Phase::kEnding, state->end().ok() ? status_ : state->end());
    return Decide(state, now_micros);
  }
  if (state->newest_plan() > epoch_) {
    Enter(Phase::kPlanning, status_.ok()
                                ? absl::CancelledError("there is a newer plan")
                                : status_);
    return Act::kGetPlan;
  }
  if (phase_ == Phase::kBroken) return DecideBroken(state);
  if (phase_ == Phase::kAwaitingNews) return AwaitNews(*state, now_micros);
  state->Finish();
  if (!state->finish_acknowledged() || !state->wants_weights()) {
    return Act::kWait;
  }
  state->GiveWeights();
  return Act::kGiveWeights;
}

RankLife::Act RankLife::DecideBroken(MemberState* state) {
  const bool lost = absl::IsUnavailable(status_) || absl::IsCancelled(status_);
  const bool broken =
      options_.group_breaks &&
      (lost || absl::IsDeadlineExceeded(status_) || absl::IsAborted(status_));
  // A server that refuses the plan's epoch knows the new plan, and so does the
  // coordinator. After a timeout the coordinator may already know of the lost
  // rank.
  const bool refused = absl::IsFailedPrecondition(status_) &&
                       !TRIBUTARY_MUTATED("refusal-is-final");
  if (!lost && !broken && !refused && !absl::IsDeadlineExceeded(status_)) {
    Enter(Phase::kEnding, status_);
    return Decide(state, 0);
  }
  if (broken) state->BreakGroup(epoch_, std::string(status_.message()));
  // The coordinator knows of a lost rank once its lease has expired.
  patience_micros_ = lost || broken ? 2 * options_.lease_micros : 0;
  quiet_answers_ = -1;
  phase_ = Phase::kAwaitingNews;
  return Act::kWait;
}

// Waits while the coordinator names something that the job waits for, and then
// for as long as the patience lasts.
RankLife::Act RankLife::AwaitNews(const MemberState& state,
                                  int64_t now_micros) {
  if (quiet_answers_ < 0 || !state.waits_for().empty()) {
    quiet_since_ = now_micros;
    quiet_answers_ = state.contact().answers();
  }
  if (state.contact().answers() - quiet_answers_ < kNewsAnswers ||
      now_micros - quiet_since_ < patience_micros_) {
    return Act::kWait;
  }
  Enter(Phase::kEnding, status_);
  return Act::kFail;
}

}  // namespace tributary
