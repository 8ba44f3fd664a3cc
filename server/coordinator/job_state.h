#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/coordinator/membership.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The life of one job:
//
//   WAITING -> RUNNING -> (STOPPING ->) DONE
//      any of these ------------------> FAILED
//
// It runs once every place is held and the model is declared: then the plan is
// published. It stops in two phases: every worker pauses and says the last step
// it has begun; the highest of them is where all stop, so that a synchronous
// job ends at one common step. When all workers have finished, the caller saves
// the weights and says MarkDone. State in, answer out, time passed in.
class JobState {
 public:
  struct Options {
    v1::JobSpec job;  // resolved
    uint64_t job_id = 1;
    uint32_t heartbeat_ms = 100;
    uint32_t lease_ms = 10'000;
    int64_t start_timeout_micros = 600'000'000;  // for all members to come
  };

  JobState(Options options, int64_t now_micros);

  // FailedPrecondition when the job is over; else as Membership::Register.
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request, int64_t now_micros);

  // FailedPrecondition when it differs from the first declaration, or comes
  // from a lost member; InvalidArgument when no plan can be made of it.
  absl::Status DeclareModel(const v1::DeclareModelRequest& request,
                            int64_t now_micros);

  // Null before it is published.
  const v1::Plan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // What the plan still waits for: "server 1, worker 0, the model".
  std::string Missing() const;

  // Renews the member's lease. Call before its steps are taken.
  absl::Status Renew(const v1::HeartbeatRequest& request, int64_t now_micros);
  // What the heartbeat says, and the orders that answer it. `last_step` is the
  // last that was taken of this worker, `steps_taken` of this request.
  v1::HeartbeatResponse Apply(const v1::HeartbeatRequest& request,
                              uint32_t steps_taken, int64_t last_step);
  // The orders of a job that is over: any member gets them, fenced or not.
  v1::HeartbeatResponse Farewell(const v1::HeartbeatRequest& request);

  // Lost leases and members that never came fail the job. Call it far more
  // often than leases last: a longer pause means that nobody was heard.
  void Tick(int64_t now_micros);
  // Before the job runs there is nothing to stop at: it fails then.
  void RequestStop();
  void Fail(absl::string_view why);  // the first reason stays
  void MarkDone();                   // only from RUNNING or STOPPING

  bool over() const {
    return phase_ == v1::JOB_PHASE_DONE || phase_ == v1::JOB_PHASE_FAILED;
  }
  v1::JobPhase phase() const { return phase_; }
  const std::string& message() const { return message_; }
  std::optional<int64_t> stop_step() const { return stop_step_; }
  bool stop_requested() const { return stop_requested_; }
  int64_t total_steps() const { return declaration_.total_steps(); }
  int64_t steps_per_epoch() const { return declaration_.steps_per_epoch(); }
  const Options& options() const { return options_; }
  const Membership& membership() const { return membership_; }

  bool AllWorkersFinished() const;
  // Everybody who is alive has been told that the job is over.
  bool EveryoneKnowsEnd() const;

 private:
  void PublishPlanWhenComplete();
  void SettleStopStep();
  // A worker's last begun step; for a server the highest of all workers.
  int64_t LastStepOf(const Place& place) const;
  void CheckFinish(const Place& worker, int64_t last_step);

  const Options options_;
  const int64_t start_micros_;
  int64_t last_tick_micros_;
  Membership membership_;
  v1::JobPhase phase_ = v1::JOB_PHASE_WAITING;
  std::string message_;
  std::optional<v1::Plan> plan_;
  v1::DeclareModelRequest declaration_;  // the first; no parameters: none yet
  bool stop_requested_ = false;
  std::optional<int64_t> stop_step_;
};

}  // namespace tributary
