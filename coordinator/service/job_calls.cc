// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/header_checksum.h"
#include "coordinator/core/members/name_list.h"

namespace tributary {
namespace {

constexpr uint32_t kLongestWaitMs = 10'000;

}  // namespace

absl::Status JobCalls::SubmitJob() const {
  absl::MutexLock lock(&job_.mu);
  const v1::JobSpec& job = job_.core.state().options().job;
  if (job.has_program()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the job \"", job.name(),
      "\" has a model of its own, which tributary-worker trains; a program "
      "joins a job without model and data"));
}

absl::StatusOr<v1::RegisterResponse> JobCalls::Register(
    const v1::RegisterRequest& request) {
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  absl::StatusOr<v1::RegisterResponse> place = job_.core.Register(request);
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  return place;
}

absl::Status JobCalls::DeclareModel(const v1::DeclareModelRequest& request) {
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  const absl::Status status = job_.core.DeclareModel(request);
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  return status;
}

absl::Duration JobCalls::WaitOf(uint32_t wait_ms) {
  return absl::Milliseconds(std::min(wait_ms, kLongestWaitMs));
}

absl::Status JobCalls::Hold(const absl::Condition& decided, uint32_t wait_ms,
                            bool observes) {
  const v1::ClusterSpec& cluster = job_.core.state().options().job.cluster();
  int& held = observes ? observers_held_ : held_calls_;
  const int most =
      observes ? kMostObservers : cluster.servers() + cluster.workers();
  if (!decided.Eval() && held >= most) {
    return absl::ResourceExhaustedError(
        absl::StrCat(held, observes ? " calls of observers" : " calls",
                     " already wait at this coordinator; try again later"));
  }
  ++held;
  AwaitFor(&job_.mu, decided, WaitOf(wait_ms));
  --held;
  return absl::OkStatus();
}

// Copies the plan, which may be large, without the lock that all members need.
absl::StatusOr<v1::Plan> JobCalls::GetPlan(
    const v1::GetPlanRequest& request,
    const std::optional<MemberPlace>& caller) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::shared_ptr<const v1::Plan> plan,
                             AwaitPlan(request, caller));
  return *plan;
}

absl::StatusOr<std::shared_ptr<const v1::Plan>> JobCalls::AwaitPlan(
    const v1::GetPlanRequest& request,
    const std::optional<MemberPlace>& caller) {
  const bool observes = caller && caller->role == v1::ROLE_OBSERVER;
  absl::MutexLock lock(&job_.mu);
  const JobState& state = job_.core.state();
  const auto there = [&state, &request] {
    return state.plan() != nullptr && !state.plans().wants_new() &&
           state.plan()->epoch() >= request.min_epoch();
  };
  const auto decided = [this, &state,
                        &there]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    return job_.closed ||
           (job_.core.Held().ok() && (state.life().over() || there()));
  };
  TRIBUTARY_RETURN_IF_ERROR(
      Hold(absl::Condition(&decided), request.wait_ms(), observes));
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  if (state.life().phase() == v1::JOB_PHASE_FAILED) {
    return absl::AbortedError(state.life().message());
  }
  if (state.life().over())
    return absl::FailedPreconditionError("the job is done");
  if (caller && !observes) {
    TRIBUTARY_RETURN_IF_ERROR(state.membership().CheckHolder(
        caller->role, caller->index, caller->incarnation));
  }
  if (there()) return state.plans().shared();
  if (job_.closed) return absl::UnavailableError("the coordinator is closing");
  if (state.plan() != nullptr && !state.plans().wants_new()) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job has plan epoch ", state.plan()->epoch(),
                     ", wanted ", request.min_epoch(), " or later"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the job still waits for ", state.Missing()));
}

absl::StatusOr<v1::HeartbeatResponse> JobCalls::Heartbeat(
    const v1::HeartbeatRequest& request) {
  const int64_t received_micros = job_.clock->NowMicros();
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Hear(request));
  if (job_.core.saver().deposed()) job_.closed = true;
  const bool takes = job_.core.MayTake(request);
  const bool trace_taken = takes && job_.core.TakeTrace(request);
  absl::StatusOr<v1::HeartbeatResponse> answer =
      takes ? job_.core.Beat(request) : job_.core.HeldBeat(request);
  if (takes && answer.ok()) {
    if (!change.Commit().ok()) {
      answer = job_.core.HeldBeat(request);
    } else if (!job_.core.state().life().over()) {
      answer->set_waits_for(job_.core.Message());
    }
  }
  if (answer.ok()) {
    answer->set_term(job_.core.saver().term());
    answer->set_trace_taken(trace_taken);
    answer->set_received_micros(received_micros);
    answer->set_answered_micros(job_.clock->NowMicros());
  }
  return answer;
}

absl::StatusOr<v1::ReportEvaluationResponse> JobCalls::ReportEvaluation(
    const v1::ReportEvaluationRequest& request) {
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  const absl::Status status =
      job_.core.evaluations().Report(request, job_.core.saver().term());
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  TRIBUTARY_RETURN_IF_ERROR(status);
  return job_.core.evaluations().AnswerReport(request);
}

absl::StatusOr<v1::AwaitEvaluationResponse> JobCalls::AwaitEvaluation(
    const v1::AwaitEvaluationRequest& request) {
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  TRIBUTARY_RETURN_IF_ERROR(job_.core.evaluations().Stand(request));
  (void)change.Commit();  // before the wait, which looks at Held itself
  const auto decided = [this, &request]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    if (job_.closed || !job_.core.Held().ok()) return job_.closed;
    return !job_.core.state().InForce(request.plan_epoch()) ||
           job_.core.evaluations().Answer(request.step()).ok();
  };
  TRIBUTARY_RETURN_IF_ERROR(Hold(absl::Condition(&decided), request.wait_ms()));
  if (job_.closed) return absl::UnavailableError("the coordinator is closing");
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  if (!job_.core.state().InForce(request.plan_epoch())) {
    return absl::FailedPreconditionError(
        absl::StrCat("plan epoch ", request.plan_epoch(), " is over"));
  }
  return job_.core.evaluations().Answer(request.step());
}

absl::StatusOr<v1::ExchangeResponse> JobCalls::Exchange(
    const v1::ExchangeRequest& request) {
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Exchange(request));
  (void)change.Commit();  // before the wait, which looks at Held itself
  const JobState& state = job_.core.state();
  const Rendezvous& rendezvous = job_.core.rendezvous();
  const auto is_over = [&state, &request] {
    return state.life().over() || state.plans().wants_new() ||
           state.plan()->epoch() != request.plan_epoch();
  };
  const auto decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    return job_.closed || (job_.core.Held().ok() && is_over()) ||
           rendezvous.IsComplete(request.group());
  };
  TRIBUTARY_RETURN_IF_ERROR(Hold(absl::Condition(&decided), request.wait_ms()));
  if (job_.closed) return absl::UnavailableError("the coordinator is closing");
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
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

absl::Status JobCalls::Put(const v1::PutWeightsRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(CheckHeader(request));
  absl::MutexLock lock(&job_.mu);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  return job_.core.ending().Put(request);
}

absl::StatusOr<v1::StopJobResponse> JobCalls::StopJob(
    const v1::StopJobRequest& request) {
  LockedJob::Change change(&job_);
  if (job_.core.saver().deposed()) return job_.core.Held();
  absl::StatusOr<v1::StopJobResponse> answer =
      job_.core.requests().Stop(request);
  if (!answer.ok()) return answer;
  TRIBUTARY_RETURN_IF_ERROR(change.Commit());
  return answer;
}

absl::StatusOr<v1::TakeCheckpointResponse> JobCalls::TakeCheckpoint(
    const v1::TakeCheckpointRequest& request) {
  LockedJob::Change change(&job_);
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  const int64_t after =
      request.has_after()
          ? request.after()
          : std::max<int64_t>(1, job_.core.state().membership().HighestBegun());
  TRIBUTARY_RETURN_IF_ERROR(job_.core.requests().AskCheckpoint(after));
  (void)change.Commit();  // before the wait, which looks at Held itself
  const auto decided = [this, after]() ABSL_SHARED_LOCKS_REQUIRED(job_.mu) {
    return job_.closed ||
           (job_.core.Held().ok() &&
            !absl::IsDeadlineExceeded(
                job_.core.requests().AnswerCheckpoint(after).status()));
  };
  TRIBUTARY_RETURN_IF_ERROR(
      Hold(absl::Condition(&decided), request.wait_ms(), /*observes=*/true));
  TRIBUTARY_RETURN_IF_ERROR(job_.core.Held());
  absl::StatusOr<v1::TakeCheckpointResponse> answer =
      job_.core.requests().AnswerCheckpoint(after);
  if (absl::IsDeadlineExceeded(answer.status()) && job_.closed) {
    return absl::UnavailableError("the coordinator is closing");
  }
  if (!request.has_after() && absl::IsDeadlineExceeded(answer.status())) {
    v1::TakeCheckpointResponse begun;
    begun.set_after(after);
    return begun;
  }
  return answer;
}

}  // namespace tributary
