// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/host/steady_waits.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/header_checksum.h"
#include "coordinator/core/name_list.h"

namespace tributary {
namespace {

constexpr uint32_t kLongestWaitMs = 10'000;

}  // namespace

JobControl::JobControl(Options options)
    : clock_(options.clock),
      term_(options.predecessor.state != nullptr
                ? options.predecessor.state->term() + 1
                : 1),
      core_(std::move(options)) {}

absl::Status JobControl::SubmitJob() const {
  absl::MutexLock lock(&mu_);
  const v1::JobSpec& job = core_.state().options().job;
  if (job.has_program()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the job \"", job.name(),
      "\" has a model of its own, which tributary-worker trains; a program "
      "joins a job without model and data"));
}

absl::StatusOr<v1::RegisterResponse> JobControl::Register(
    const v1::RegisterRequest& request) {
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  absl::StatusOr<v1::RegisterResponse> place = core_.Register(request);
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  return place;
}

absl::Status JobControl::DeclareModel(const v1::DeclareModelRequest& request) {
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  const absl::Status status = core_.state().DeclareModel(request, core_.now());
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  return status;
}

absl::Duration JobControl::WaitOf(uint32_t wait_ms) {
  return absl::Milliseconds(std::min(wait_ms, kLongestWaitMs));
}

absl::Status JobControl::Hold(const absl::Condition& decided, uint32_t wait_ms,
                              bool observes) {
  const v1::ClusterSpec& cluster = core_.state().options().job.cluster();
  int& held = observes ? observers_held_ : held_calls_;
  const int most =
      observes ? kMostObservers : cluster.servers() + cluster.workers();
  if (!decided.Eval() && held >= most) {
    return absl::ResourceExhaustedError(
        absl::StrCat(held, observes ? " calls of observers" : " calls",
                     " already wait at this coordinator; try again later"));
  }
  ++held;
  AwaitFor(&mu_, decided, WaitOf(wait_ms));
  --held;
  return absl::OkStatus();
}

// A large plan is copied without the lock, which all members need.
absl::StatusOr<v1::Plan> JobControl::GetPlan(
    const v1::GetPlanRequest& request,
    const std::optional<MemberPlace>& caller) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::shared_ptr<const v1::Plan> plan,
                             AwaitPlan(request, caller));
  return *plan;
}

absl::StatusOr<std::shared_ptr<const v1::Plan>> JobControl::AwaitPlan(
    const v1::GetPlanRequest& request,
    const std::optional<MemberPlace>& caller) {
  const bool observes = caller && caller->role == v1::ROLE_OBSERVER;
  absl::MutexLock lock(&mu_);
  const JobState& state = core_.state();
  const auto there = [&state, &request] {
    return state.plan() != nullptr && !state.wants_new_plan() &&
           state.plan()->epoch() >= request.min_epoch();
  };
  const auto decided = [this, &state,
                        &there]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (core_.Held().ok() && (state.over() || there()));
  };
  TRIBUTARY_RETURN_IF_ERROR(
      Hold(absl::Condition(&decided), request.wait_ms(), observes));
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  if (state.phase() == v1::JOB_PHASE_FAILED) {
    return absl::AbortedError(state.message());
  }
  if (state.over()) return absl::FailedPreconditionError("the job is done");
  if (caller && !observes) {
    TRIBUTARY_RETURN_IF_ERROR(state.membership().CheckHolder(
        caller->role, caller->index, caller->incarnation));
  }
  if (there()) return state.shared_plan();
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  if (state.plan() != nullptr && !state.wants_new_plan()) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job has plan epoch ", state.plan()->epoch(),
                     ", wanted ", request.min_epoch(), " or later"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the job still waits for ", state.Missing()));
}

absl::StatusOr<v1::HeartbeatResponse> JobControl::Heartbeat(
    const v1::HeartbeatRequest& request) {
  const int64_t received_micros = clock_->NowMicros();
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Hear(request));
  if (core_.saver().deposed()) closed_ = true;
  const bool takes = core_.MayTake(request);
  const bool trace_taken = takes && core_.TakeTrace(request);
  absl::StatusOr<v1::HeartbeatResponse> answer =
      takes ? core_.Beat(request) : core_.HeldBeat(request);
  if (takes && answer.ok()) {
    if (!change.Commit().ok()) {
      answer = core_.HeldBeat(request);
    } else if (!core_.state().over()) {
      answer->set_waits_for(core_.Message());
    }
  }
  if (answer.ok()) {
    answer->set_term(term_);
    answer->set_trace_taken(trace_taken);
    answer->set_received_micros(received_micros);
    answer->set_answered_micros(clock_->NowMicros());
  }
  return answer;
}

absl::StatusOr<v1::ReportEvaluationResponse> JobControl::ReportEvaluation(
    const v1::ReportEvaluationRequest& request) {
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  const absl::Status status = core_.ReportEvaluation(request);
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  TRIBUTARY_RETURN_IF_ERROR(status);
  return core_.AnswerReport(request);
}

absl::StatusOr<v1::AwaitEvaluationResponse> JobControl::AwaitEvaluation(
    const v1::AwaitEvaluationRequest& request) {
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  TRIBUTARY_RETURN_IF_ERROR(core_.StandAt(request));
  (void)change.Commit();  // before the wait, which looks at Held itself
  const JobCore& core = core_;
  const auto decided = [this, &core, &request]()
                           ABSL_SHARED_LOCKS_REQUIRED(mu_) {
                             if (closed_ || !core.Held().ok()) return closed_;
                             return !core.InForce(request.plan_epoch()) ||
                                    core.AnswerEvaluation(request.step()).ok();
                           };
  TRIBUTARY_RETURN_IF_ERROR(Hold(absl::Condition(&decided), request.wait_ms()));
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  if (!core_.InForce(request.plan_epoch())) {
    return absl::FailedPreconditionError(
        absl::StrCat("plan epoch ", request.plan_epoch(), " is over"));
  }
  return core_.AnswerEvaluation(request.step());
}

absl::StatusOr<v1::ExchangeResponse> JobControl::Exchange(
    const v1::ExchangeRequest& request) {
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  TRIBUTARY_RETURN_IF_ERROR(core_.Exchange(request));
  (void)change.Commit();  // before the wait, which looks at Held itself
  const JobState& state = core_.state();
  const Rendezvous& rendezvous = core_.rendezvous();
  const auto is_over = [&state, &request] {
    return state.over() || state.wants_new_plan() ||
           state.plan()->epoch() != request.plan_epoch();
  };
  const auto decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (core_.Held().ok() && is_over()) ||
           rendezvous.IsComplete(request.group());
  };
  TRIBUTARY_RETURN_IF_ERROR(Hold(absl::Condition(&decided), request.wait_ms()));
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  if (is_over()) {
    return absl::AbortedError(
        absl::StrCat("plan epoch ", request.plan_epoch(), " is over"));
  }
  if (auto all = rendezvous.AnswerTo(request.rank(), request.group())) {
    return *std::move(all);
  }
  const std::vector<uint32_t> missing = rendezvous.Missing(request.group());
  v1::ErrorDetail detail;
  *detail.mutable_wait() = WaitForRanks(
      absl::StrCat(RankList(missing), " in group ", request.group()), missing,
      /*step=*/0);
  return WithDetail(absl::DeadlineExceededError(
                        absl::StrCat("waits for ", detail.wait().text())),
                    detail);
}

absl::Status JobControl::Put(const v1::PutWeightsRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(CheckHeader(request));
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  return core_.Put(request);
}

absl::StatusOr<v1::StopJobResponse> JobControl::StopJob(
    const v1::StopJobRequest& request) {
  Change change(this);
  if (core_.saver().deposed()) return core_.Held();
  absl::StatusOr<v1::StopJobResponse> answer = core_.Stop(request);
  if (!answer.ok()) return answer;
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  return answer;
}

absl::StatusOr<v1::TakeCheckpointResponse> JobControl::TakeCheckpoint(
    const v1::TakeCheckpointRequest& request) {
  Change change(this);
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  const int64_t after =
      request.has_after()
          ? request.after()
          : std::max<int64_t>(1, core_.state().membership().HighestBegun());
  TRIBUTARY_RETURN_IF_ERROR(core_.AskCheckpoint(after));
  (void)change.Commit();  // before the wait, which looks at Held itself
  const JobCore& core = core_;
  const auto decided = [this, &core, after]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ ||
           (core.Held().ok() &&
            !absl::IsDeadlineExceeded(core.AnswerCheckpoint(after).status()));
  };
  TRIBUTARY_RETURN_IF_ERROR(
      Hold(absl::Condition(&decided), request.wait_ms(), /*observes=*/true));
  TRIBUTARY_RETURN_IF_ERROR(core_.Held());
  absl::StatusOr<v1::TakeCheckpointResponse> answer =
      core_.AnswerCheckpoint(after);
  if (absl::IsDeadlineExceeded(answer.status()) && closed_) {
    return absl::UnavailableError("the coordinator is closing");
  }
  if (!request.has_after() && absl::IsDeadlineExceeded(answer.status())) {
    v1::TakeCheckpointResponse begun;
    begun.set_after(after);
    return begun;
  }
  return answer;
}

v1::JobStatusResponse JobControl::Snapshot() const {
  absl::MutexLock lock(&mu_);
  v1::JobStatusResponse status = JobStatusOf(core_.state(), core_.reports(),
                                             core_.checkpoints(), core_.now());
  status.set_phase(core_.phase());
  status.set_message(core_.Message());
  status.set_cause(core_.state().cause());
  if (JobWait waiting = core_.Waiting(); waiting) {
    *status.mutable_wait() = std::move(waiting.wait);
    status.mutable_wait()->set_seconds(
        static_cast<double>(core_.now() - waiting.since_micros) / 1e6);
  }
  *status.mutable_events() = core_.events().Messages();
  return status;
}

JobTotals JobControl::Totals() const {
  absl::MutexLock lock(&mu_);
  return JobTotalsOf(core_.state(), core_.reports(), core_.checkpoints(),
                     core_.decisions());
}

std::vector<v1::RegisterRequest> JobControl::Workers() const {
  absl::MutexLock lock(&mu_);
  std::vector<v1::RegisterRequest> workers;
  for (const Place& place : core_.state().membership().workers()) {
    workers.push_back(place.holder);
  }
  return workers;
}

HistogramSnapshot JobControl::CheckpointSeconds() const {
  absl::MutexLock lock(&mu_);
  return core_.checkpoints().seconds().Snapshot();
}

JobUpdate JobControl::WaitForUpdate(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || core_.HasUpdate();
  };
  AwaitFor(&mu_, absl::Condition(&ready), timeout);
  return core_.TakeUpdate();
}

void JobControl::AllowStart(const std::string& checkpoint_directory) {
  Change change(this);
  core_.AllowStart(checkpoint_directory);
}

LossVerdict JobControl::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                   absl::string_view how) {
  Change change(this);
  return core_.state().MemberLost(role, index, pid, how, core_.now());
}

void JobControl::RequestStop() {
  Change change(this);
  core_.state().RequestStop();
}

void JobControl::Fail(absl::string_view why, v1::Cause cause) {
  Change change(this);
  core_.state().Fail(why, cause);
}

void JobControl::Saved(uint64_t plan_epoch, const absl::Status& status) {
  Change change(this);
  core_.Saved(plan_epoch, status);
  (void)change.Commit();
  TRIBUTARY_FAILPOINT("coordinator-done");
}

bool JobControl::WaitUntilEveryoneKnowsEnd(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (core_.state().over() && core_.Held().ok() &&
                       core_.state().membership().EveryoneKnowsEnd());
  };
  return AwaitFor(&mu_, absl::Condition(&known), timeout);
}

void JobControl::Tick(absl::Duration timeout) {
  Change change(this);
  AwaitFor(&mu_, absl::Condition(&closed_), timeout);
  core_.Tick();
}

void JobControl::AwaitWork(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || core_.ReadyToSave() || core_.checkpoints().HasWork();
  };
  AwaitFor(&mu_, absl::Condition(&there), timeout);
}

std::optional<PendingManifest> JobControl::NextManifest() {
  absl::MutexLock lock(&mu_);
  if (!core_.Held().ok()) return std::nullopt;
  return core_.NextManifest();
}

bool JobControl::ManifestWritten(const PendingManifest& pending,
                                 const std::string& folder,
                                 const absl::Status& status) {
  Change change(this);
  return core_.saver().deposed() ||
         core_.checkpoints().Written(pending, folder, status, core_.now());
}

std::vector<std::string> JobControl::TakeFailedCheckpoints() {
  absl::MutexLock lock(&mu_);
  return core_.checkpoints().TakeFailed();
}

int64_t JobControl::BestStep() const {
  absl::MutexLock lock(&mu_);
  const bool keeps = core_.state().options().job.evaluation().keep_best();
  return keeps ? core_.decisions().best().step().value_or(0) : 0;
}

std::optional<UnreadableCheckpoint> JobControl::TakeUnreadable() {
  absl::MutexLock lock(&mu_);
  return core_.checkpoints().TakeUnreadable();
}

void JobControl::GoBack(const UnreadableCheckpoint& lost, int64_t step,
                        const std::string& folder) {
  Change change(this);
  core_.checkpoints().GoBack(lost, step, folder);
}

std::string JobControl::CheckpointDirectoryAtEnd() const {
  absl::MutexLock lock(&mu_);
  const JobState& state = core_.state();
  if (!state.over() || state.plan() == nullptr || core_.saver().deposed()) {
    return "";
  }
  return state.plan()->checkpoint_directory();
}

bool JobControl::CheckpointOpen() const {
  absl::MutexLock lock(&mu_);
  return core_.checkpoints().Awaits(core_.reports().progress().merged_step());
}

bool JobControl::ReadyToSave(v1::Plan* plan, int64_t* step) const {
  absl::MutexLock lock(&mu_);
  if (!core_.ReadyToSave() || !core_.Held().ok()) return false;
  *plan = *core_.state().plan();
  *step = core_.state().final_step();
  return true;
}

bool JobControl::InForce(uint64_t plan_epoch) const {
  absl::MutexLock lock(&mu_);
  return core_.InForce(plan_epoch);
}

absl::StatusOr<FinalWeights> JobControl::TakePutWeights(int64_t step) const {
  absl::MutexLock lock(&mu_);
  return core_.TakePutWeights(step);
}

void JobControl::SetWaits(const v1::Wait& what) {
  absl::MutexLock lock(&mu_);
  core_.SetWaits(what);
}

void JobControl::Close() {
  absl::MutexLock lock(&mu_);
  closed_ = true;
}

bool JobControl::closed() const {
  absl::MutexLock lock(&mu_);
  return closed_;
}

bool JobControl::deposed() const {
  absl::MutexLock lock(&mu_);
  return core_.saver().deposed();
}

bool JobControl::saved() const {
  absl::MutexLock lock(&mu_);
  return core_.saver().saved();
}

}  // namespace tributary
