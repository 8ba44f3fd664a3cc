// SPDX-License-Identifier: Apache-2.0
#include "common/member/state/member_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/cause.h"

namespace tributary {

MemberState::MemberState(v1::Role role, const v1::RegisterResponse& place,
                         std::string coordinator, int64_t lost_micros,
                         int64_t now_micros)
    : role_(role),
      num_workers_(static_cast<uint32_t>(place.job().cluster().workers())),
      contact_(std::move(coordinator), place.term(), lost_micros, now_micros) {
  place_.set_role(role);
  place_.set_index(place.index());
  place_.set_incarnation(place.incarnation());
  place_.set_job_id(place.job_id());
}

MemberState::Gate MemberState::Check(int64_t step) const {
  if (!end_.ok() || phase_ == v1::JOB_PHASE_DONE) return Gate::kEnded;
  if (plan_is_over()) return Gate::kNewPlan;
  if (stop_step_ && step > *stop_step_) return Gate::kStop;
  // Waits for the first answer: the stop step may have been settled already.
  if (contact_.answers() == 0 || Paused() || steps_.full()) {
    return Gate::kWait;
  }
  return hold_.HoldsBack(step) ? Gate::kWait : Gate::kOpen;
}

std::optional<absl::Status> MemberState::TryToBegin(int64_t step) {
  switch (Check(step)) {
    case Gate::kOpen:
      Begin(step);
      return absl::OkStatus();
    case Gate::kStop:
      return absl::CancelledError(
          absl::StrCat("the job stops after step ", *stop_step_));
    case Gate::kNewPlan:
      return absl::FailedPreconditionError("a new plan is in force");
    case Gate::kEnded:
      return end_.ok() ? absl::CancelledError("the job is done") : end_;
    case Gate::kWait:
      hold_.StandAfter(step - 1);
      break;
  }
  return std::nullopt;
}

std::optional<absl::Status> MemberState::TryToEnd() {
  if (!end_.ok()) return end_;
  if (phase_ == v1::JOB_PHASE_DONE) return absl::OkStatus();
  if (plan_is_over()) {
    return absl::FailedPreconditionError("a new plan is in force");
  }
  ending_.EndProgram();
  if (!stop_step_) return std::nullopt;
  if (*stop_step_ <= begun_step_) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "the program of worker ", place_.index(), " has ended after step ",
      begun_step_, ", but the job goes on to step ", *stop_step_,
      ": every rank must take the same number of steps"));
}

bool MemberState::Urgent() const {
  if (!end_.ok()) return false;
  if (ending_.UntoldProgram() || contact_.answers() == 0) return true;
  if (Paused() && !told_paused_) return true;
  if (hold_.Urgent(/*waits=*/started_)) return true;
  if (checkpoints_.urgent() || group_break_.urgent()) return true;
  if (snapshots_.urgent()) return true;
  const bool finishes = ending_.finishing() && !ending_.acknowledged();
  return (finishes && !steps_.stalled()) || steps_.urgent();
}

v1::HeartbeatRequest MemberState::NextHeartbeat() {
  v1::HeartbeatRequest request = place_;
  request.set_term(contact_.term());
  const bool all = steps_.AddTo(&request);
  request.set_begun_step(std::max(begun_step_, begun_before_));
  request.set_paused(Paused());
  request.set_plan_epoch(plan_epoch_);
  request.set_start_step(start_step_);
  ending_.AddTo(&request, all);
  snapshots_.AddTo(&request);
  hold_.AddTo(&request, /*waits=*/started_);
  checkpoints_.AddTo(&request);
  group_break_.AddTo(&request);
  return request;
}

void MemberState::OnAnswer(const v1::HeartbeatRequest& request,
                           const v1::HeartbeatResponse& answer,
                           int64_t now_micros) {
  if (answer.term() < contact_.term()) {
    return OnError(absl::UnavailableError("the coordinator has been replaced"),
                   now_micros);
  }
  waits_for_ = answer.waits_for();
  if (answer.term() == request.term()) Settle(request, answer);
  if (contact_.Take(answer.term(), now_micros)) steps_.SendAgain();
  ending_.Follow(request.plan_epoch() == plan_epoch_ && answer.wants_weights());
  newest_plan_ = std::max(newest_plan_, answer.plan_epoch());
  adopt_ranks_.clear();  // limits the threads: one per rank
  for (uint32_t rank : answer.adopt_ranks()) {
    if (rank < num_workers_) adopt_ranks_.push_back(rank);
  }
  if (answer.phase() != v1::JOB_PHASE_UNSPECIFIED) phase_ = answer.phase();
  // A decision under an earlier plan is made again.
  stop_step_.reset();
  snapshots_.Want({});
  if (answer.plan_epoch() == plan_epoch_) {
    if (answer.has_stop_step()) stop_step_ = answer.stop_step();
    snapshots_.Want({answer.cut_step(), answer.cut_is_best()});
    if (answer.cut_is_best()) checkpoints_.SetBest(answer.cut_step());
  }
  if (role_ == v1::ROLE_WORKER) {
    hold_.Follow(answer, answer.plan_epoch() == plan_epoch_);
  }
  if (phase_ == v1::JOB_PHASE_FAILED && end_.ok()) {
    end_ = absl::AbortedError(answer.message());
  }
}

void MemberState::OnResult(const v1::HeartbeatRequest& request,
                           const absl::StatusOr<v1::HeartbeatResponse>& answer,
                           int64_t now_micros) {
  answer.ok() ? OnAnswer(request, *answer, now_micros)
              : OnError(answer.status(), now_micros);
}

bool MemberState::plan_is_over() const {
  // A member that has not fetched a plan yet works on the first.
  return newest_plan_ > std::max<uint64_t>(1, plan_epoch_);
}

void MemberState::Settle(const v1::HeartbeatRequest& request,
                         const v1::HeartbeatResponse& answer) {
  // False for an answer to a request under an earlier plan, whose steps have
  // been dropped.
  const bool current = request.plan_epoch() == plan_epoch_;
  const bool all = steps_.Settle(request, current ? answer.steps_taken() : 0);
  if (current) ending_.Settle(request, all);
  checkpoints_.Settle(request, answer.checkpoints_taken());
  told_paused_ = request.paused();
  hold_.Settle(request);
}

void MemberState::OnError(const absl::Status& error, int64_t now_micros) {
  if (!end_.ok() || phase_ == v1::JOB_PHASE_DONE) return;
  if (!absl::IsUnavailable(error) && !absl::IsResourceExhausted(error)) {
    end_ = error;
    return;
  }
  if (contact_.IsLost(now_micros)) end_ = contact_.Silence(now_micros);
}

void MemberState::OnPlan(uint64_t plan_epoch, int64_t start_step) {
  if (phase_ == v1::JOB_PHASE_WAITING) phase_ = v1::JOB_PHASE_RUNNING;
  StartAt(plan_epoch, start_step);
  started_ = false;
}

void MemberState::StartAt(uint64_t plan_epoch, int64_t step, int64_t begun) {
  if (plan_epoch != plan_epoch_) {
    steps_.Drop();
    stop_step_.reset();
    snapshots_.BeginPlan();
    hold_.BeginPlan();
  }
  plan_epoch_ = plan_epoch;
  newest_plan_ = std::max(newest_plan_, plan_epoch);
  start_step_ = step;
  begun_step_ = step;
  begun_before_ = begun;
  started_ = true;
  told_paused_ = false;
  ending_ = {};
  steps_.ForgetStall();
}

absl::Status MemberState::NewsAfter(uint64_t epoch) const {
  if (!end_.ok()) return end_;
  if (phase_ == v1::JOB_PHASE_DONE) {
    return absl::CancelledError("the job is done");
  }
  if (newest_plan_ > epoch) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("plan epoch ", epoch, " is still in force"));
}

v1::HeartbeatRequest FinalHeartbeat(v1::HeartbeatRequest heartbeat,
                                    const absl::Status& why) {
  heartbeat.set_finished(false);
  heartbeat.set_error(std::string(why.message()));
  heartbeat.set_error_cause(CauseOf(why));
  return heartbeat;
}

}  // namespace tributary
