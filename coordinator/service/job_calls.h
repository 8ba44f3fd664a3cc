// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wire/identity/member_ticket.h"
#include "coordinator/service/locked_job.h"

namespace tributary {

// The calls of the service, which members and observers make. They validate
// their requests. Every function may be called from any thread; those whose
// request has wait_ms wait.
class JobCalls {
 public:
  // Limit of observers' calls that wait: half of the threads that the
  // coordinator has in addition to those for its members.
  static constexpr int kMostObservers = 32;

  // How long a call with this wait_ms waits: 10 s at most, because it holds a
  // thread of the server.
  static absl::Duration WaitOf(uint32_t wait_ms);

  // `job` must outlive this object.
  explicit JobCalls(LockedJob* job) : job_(*job) {}

  absl::Status SubmitJob() const;  // the job is known already (JobIntake)
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request);
  absl::Status DeclareModel(const v1::DeclareModelRequest& request);
  // `caller`: the place that the caller's ticket proves; nullopt: it has no
  // place. Waiting observers are counted apart from waiting members.
  absl::StatusOr<v1::Plan> GetPlan(
      const v1::GetPlanRequest& request,
      const std::optional<MemberPlace>& caller = std::nullopt);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request);
  absl::StatusOr<v1::ReportEvaluationResponse> ReportEvaluation(
      const v1::ReportEvaluationRequest& request);
  absl::StatusOr<v1::AwaitEvaluationResponse> AwaitEvaluation(
      const v1::AwaitEvaluationRequest& request);
  absl::StatusOr<v1::ExchangeResponse> Exchange(
      const v1::ExchangeRequest& request);
  absl::Status Put(const v1::PutWeightsRequest& request);
  absl::StatusOr<v1::StopJobResponse> StopJob(
      const v1::StopJobRequest& request);
  absl::StatusOr<v1::TakeCheckpointResponse> TakeCheckpoint(
      const v1::TakeCheckpointRequest& request);

 private:
  // Waits until the condition holds, for WaitOf(wait_ms). ResourceExhausted: as
  // many calls already wait as the job has members, or kMostObservers calls of
  // observers. Any client can make such calls: they must not take all threads
  // of the server, and observers must not take the members' threads.
  absl::Status Hold(const absl::Condition& decided, uint32_t wait_ms,
                    bool observes = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(job_.mu);
  // Waits for the plan in force, under the lock.
  absl::StatusOr<std::shared_ptr<const v1::Plan>> AwaitPlan(
      const v1::GetPlanRequest& request,
      const std::optional<MemberPlace>& caller);

  LockedJob& job_;
  int held_calls_ ABSL_GUARDED_BY(job_.mu) = 0;      // of members
  int observers_held_ ABSL_GUARDED_BY(job_.mu) = 0;  // calls of observers
};

}  // namespace tributary
