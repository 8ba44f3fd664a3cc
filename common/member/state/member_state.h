// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/member/state/checkpoint_hold.h"
#include "common/member/state/checkpoint_reports.h"
#include "common/member/state/coordinator_contact.h"
#include "common/member/state/member_ending.h"
#include "common/member/state/snapshot_reports.h"
#include "common/member/state/step_reports.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A member's knowledge of its job, what it still has to report, and whether
// its next step may begin. A plain object without locks or waits: time is
// passed in.
class MemberState {
 public:
  enum class Gate {
    kOpen,     // the step may begin
    kWait,     // ask again after the next heartbeat
    kStop,     // the job stops before this step: evaluate, finish
    kNewPlan,  // fetch it: steps of the old plan no longer count
    kEnded     // see end()
  };

  // `lost_micros`: the coordinator counts as lost after this time without an
  // answer.
  MemberState(v1::Role role, const v1::RegisterResponse& place,
              std::string coordinator, int64_t lost_micros, int64_t now_micros);

  // Call it for steps in increasing order, each after the last begun step.
  Gate Check(int64_t step) const;
  // Begins the step if its gate is open; the result is that of
  // Member::BeginStep. Without a value: ask again after the next answer.
  std::optional<absl::Status> TryToBegin(int64_t step);
  // Records that the program takes no step after begun_step(); the result is as
  // from Member::EndProgram. Without a value: ask again after the next answer.
  std::optional<absl::Status> TryToEnd();
  void Begin(int64_t step) {
    begun_step_ = step;
    started_ = true;
  }
  // Starts the first or a new plan, which means that every member has joined.
  // Drops the unreported steps of an earlier plan, because they will be
  // computed again.
  void OnPlan(uint64_t plan_epoch, int64_t start_step);
  // This process continues after `step` steps of the plan. A previous process
  // in this place has sent parts of the steps up to `begun`.
  void StartAt(uint64_t plan_epoch, int64_t step, int64_t begun = 0);
  int64_t begun_step() const { return begun_step_; }

  void ReportStep(const v1::StepReport& report) { steps_.Add(report); }
  // No step may begin or be reported after this.
  void Finish() { ending_.Finish(); }
  bool finish_acknowledged() const { return ending_.acknowledged(); }
  // Whether the coordinator needs the final weights (again). GiveWeights: they
  // are being sent.
  bool wants_weights() const { return ending_.wants_weights(); }
  void GiveWeights() { ending_.GiveWeights(); }

  // True when a heartbeat should be sent without waiting for the interval.
  bool Urgent() const;

  // The heartbeat to send now. The caller fills in what the state does not know
  // (waiting_for, bytes, memory, device).
  v1::HeartbeatRequest NextHeartbeat();
  // Handles an answer. An answer with a lower term than an earlier one comes
  // from a replaced coordinator and is treated as an error. A higher term means
  // that a new coordinator has taken over: it took nothing of this request, and
  // the next request repeats the kept steps.
  void OnAnswer(const v1::HeartbeatRequest& request,
                const v1::HeartbeatResponse& answer, int64_t now_micros);
  // Unavailable and ResourceExhausted are tolerated for `lost_micros`; any
  // other error ends the job for this member.
  void OnError(const absl::Status& error, int64_t now_micros);

  // The coordinator has answered, but its answer does not count yet.
  void OnContact(int64_t now_micros) { contact_.Touch(now_micros); }

  // Handles the result of a heartbeat: an answer or an error.
  void OnResult(const v1::HeartbeatRequest& request,
                const absl::StatusOr<v1::HeartbeatResponse>& answer,
                int64_t now_micros);
  // True when no heartbeat follows.
  bool over() const { return !end_.ok() || phase_ == v1::JOB_PHASE_DONE; }

  const CoordinatorContact& contact() const { return contact_; }
  // Queues a report of this member's checkpoint file; it is sent until taken.
  void ReportCheckpoint(const v1::CheckpointReport& report) {
    checkpoints_.Add(report);
  }
  // Reports that this worker's group cannot continue under this plan, until
  // there is a new one.
  void BreakGroup(uint64_t plan_epoch, std::string why) {
    group_break_.Set(plan_epoch, std::move(why));
  }
  // The reason to wait in the coordinator's last answer; empty: none.
  const std::string& waits_for() const { return waits_for_; }
  // Whether the plan that this process works on has ended.
  bool plan_is_over() const;
  // Epoch of the coordinator's newest plan; 0: unknown.
  uint64_t newest_plan() const { return newest_plan_; }
  // Ranks that the coordinator wants this worker to take over.
  const std::vector<uint32_t>& adopt_ranks() const { return adopt_ranks_; }
  WantedCut wanted_cut() const { return snapshots_.wanted(); }
  // The checkpoint of this step has the best weights so far.
  void SetBest(int64_t step) { checkpoints_.SetBest(step); }
  // Reports that this server has the snapshot of `step`, or cannot have it.
  void ReportCut(int64_t step) { snapshots_.Report(step); }
  // Returns whether this worker owes a file of the checkpoint of `step`, for
  // which somebody has asked; from then on it owes none. Call it once this step
  // is finished and before the next one, whose gate may be open already.
  bool TakeAskedCheckpoint(int64_t step) { return hold_.TakeOwed(step); }

  v1::JobPhase phase() const { return phase_; }
  std::optional<int64_t> stop_step() const { return stop_step_; }
  // OK while the job lives and when it is done. Aborted: it has failed, with
  // the reason. Unavailable: the coordinator is lost. FailedPrecondition: the
  // coordinator has given the place to another process.
  const absl::Status& end() const { return end_; }
  // OK: there is a newer plan than `epoch`. Cancelled: the job is done.
  // DeadlineExceeded: the plan is still in force. Otherwise end().
  absl::Status NewsAfter(uint64_t epoch) const;

 private:
  // Drops the reports in the request that the coordinator has taken.
  void Settle(const v1::HeartbeatRequest& request,
              const v1::HeartbeatResponse& answer);
  // The next step waits until the coordinator, which must know the begun step,
  // has determined where the job stops.
  bool Paused() const {
    return phase_ == v1::JOB_PHASE_STOPPING && !stop_step_ && started_;
  }

  const v1::Role role_;
  const uint32_t num_workers_;
  // The fields of every heartbeat that do not change: the member's place.
  v1::HeartbeatRequest place_;
  CoordinatorContact contact_;

  v1::JobPhase phase_ = v1::JOB_PHASE_WAITING;
  std::optional<int64_t> stop_step_;
  absl::Status end_;
  std::string waits_for_;
  std::vector<uint32_t> adopt_ranks_;

  uint64_t plan_epoch_ = 0;
  uint64_t newest_plan_ = 0;
  int64_t start_step_ = 0;
  int64_t begun_step_ = 0;
  int64_t begun_before_ = 0;  // by a previous process in this place
  bool started_ = false;      // the begun step is known
  bool told_paused_ = false;

  StepReports steps_;  // of this plan
  CheckpointReports checkpoints_;
  SnapshotReports snapshots_;
  CheckpointHold hold_;  // of a worker
  GroupBreak group_break_;
  MemberEnding ending_;
};

// The last heartbeat of a member that cannot continue.
v1::HeartbeatRequest FinalHeartbeat(v1::HeartbeatRequest heartbeat,
                                    const absl::Status& why);

}  // namespace tributary
