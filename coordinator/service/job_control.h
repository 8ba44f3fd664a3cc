// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/telemetry/histogram.h"
#include "common/wire/member_ticket.h"
#include "coordinator/service/job_core.h"
#include "coordinator/service/job_status.h"

namespace tributary {

// Guards the coordinator's core objects with one lock. Every public function
// may be called from any thread; only those with a timeout wait.
//
// State is written ahead: every change is saved before it is answered, shown or
// acted upon. While saving fails, heartbeats are answered with the previous
// state and every other call with Unavailable, and each Tick retries. After
// loss_timeout the job fails. Evaluations and the newest checkpoint are saved
// too, but the job does not wait for them. The state is saved under the lock,
// because states have to reach the disk in the order of the changes.
class JobControl {
 public:
  // How many calls of observers may wait: half of the threads that the
  // coordinator has in addition to those for its members.
  static constexpr int kMostObservers = 32;

  using Options = JobCore::Options;

  // How long a call waits that asks for this: 10 s at most, because it holds a
  // thread of the server.
  static absl::Duration WaitOf(uint32_t wait_ms);

  explicit JobControl(Options options);

  // The service's calls. They validate their requests.
  absl::Status SubmitJob() const;  // the job is known already (JobIntake)
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request);
  absl::Status DeclareModel(const v1::DeclareModelRequest& request);
  // `caller`: the place that the caller's ticket proves; none: it has no place.
  // Observers wait apart from the members of the job.
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
  v1::JobStatusResponse Snapshot() const;
  // Seconds that each checkpoint took, measured at its slowest writer.
  HistogramSnapshot CheckpointSeconds() const;

  // Calls of the process that runs the coordinator.
  //
  // Ends hold_start. The argument is the directory for checkpoints; empty:
  // none.
  void AllowStart(const std::string& checkpoint_directory);
  // The process of a member is known to have ended.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how);
  // Waits until there is something new and returns it; after `timeout` the
  // update may be empty. For one caller: each record is returned once.
  JobUpdate WaitForUpdate(absl::Duration timeout);
  JobTotals Totals() const;
  // The processes that hold the ranks, by rank; an empty one: none yet.
  std::vector<v1::RegisterRequest> Workers() const;
  // All workers stop at one common step; then the weights are read and the job
  // is done. Returns at once.
  void RequestStop();
  // Ends the job for all members with this message; no effect when it is over.
  void Fail(absl::string_view why, v1::Cause cause = v1::CAUSE_UNSPECIFIED);
  // Waits until every living member has learned from a heartbeat that the job
  // is over. False after `timeout`.
  bool WaitUntilEveryoneKnowsEnd(absl::Duration timeout);

  // For the lease thread: waits for `timeout`, or until Close is called, and
  // then checks the leases.
  void Tick(absl::Duration timeout);
  // For the writing thread: waits up to `timeout` for a manifest to write, for
  // a checkpoint that cannot be read, for all workers to have finished, or for
  // Close.
  void AwaitWork(absl::Duration timeout);
  // The next manifest to write, if any, and the result of writing it. False: a
  // new plan has replaced the manifest's plan, so its steps no longer count.
  std::optional<PendingManifest> NextManifest();
  bool ManifestWritten(const PendingManifest& pending,
                       const std::string& folder, const absl::Status& status);
  // The checkpoint that a member of the newest plan cannot read, if any, and
  // the older checkpoint to use instead; no folder: the job's beginning.
  std::optional<UnreadableCheckpoint> TakeUnreadable();
  void GoBack(const UnreadableCheckpoint& lost, int64_t step,
              const std::string& folder);
  // Takes the directories of checkpoints that have failed since the last call.
  std::vector<std::string> TakeFailedCheckpoints();
  // Of the best evaluation, whose checkpoint the job keeps; 0: none.
  int64_t BestStep() const;
  // The checkpoint directory of a job that is over; empty: the job is not over,
  // or writes no checkpoints.
  std::string CheckpointDirectoryAtEnd() const;
  // Whether a checkpoint of a finished step may still become complete.
  bool CheckpointOpen() const;
  // True once all workers have finished and the weights can be saved. Sets the
  // plan and the step after which it ended.
  bool ReadyToSave(v1::Plan* plan, int64_t* step) const;
  // Whether this plan is the newest and has not ended.
  bool InForce(uint64_t plan_epoch) const;
  // The weights that the ranks have sent after this step. FailedPrecondition:
  // some are missing; the message names the ranks that are asked for them.
  absl::StatusOr<FinalWeights> TakePutWeights(int64_t step) const;
  // Ends the job. An error is ignored when the plan is no longer in force: then
  // a server was lost, and all members start over.
  void Saved(uint64_t plan_epoch, const absl::Status& status);
  // Sets what the job waits for besides members.
  void SetWaits(const v1::Wait& what);
  void Close();  // ends every wait
  bool closed() const;
  bool deposed() const;  // another coordinator of this job has a higher term
  bool saved() const;    // every change is on disk
  uint64_t term() const { return term_; }

 private:
  // The lock for a change. Its end, or Commit before, saves the change and then
  // publishes it, so that no change can be seen before it is saved.
  class ABSL_SCOPED_LOCKABLE Change {
   public:
    explicit Change(JobControl* control)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(control->mu_)
        : control_(*control) {
      control_.mu_.Lock();
    }
    ~Change() ABSL_UNLOCK_FUNCTION() {
      (void)Commit();
      control_.mu_.Unlock();
    }
    // Why the change must not be seen yet; OK: it may.
    absl::Status Commit() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (!committed_) control_.core_.Commit();
      committed_ = true;
      return control_.core_.Held();
    }

   private:
    JobControl& control_;
    bool committed_ = false;
  };

  // Waits in a service's call until the condition holds, for WaitOf(wait_ms).
  // ResourceExhausted: as many calls already wait as the job has members, or
  // kMostObservers calls of observers. Any client can make such calls: they
  // must not take all threads of the server, and observers must not take the
  // members' threads.
  absl::Status Hold(const absl::Condition& decided, uint32_t wait_ms,
                    bool observes = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for the plan in force, under the lock.
  absl::StatusOr<std::shared_ptr<const v1::Plan>> AwaitPlan(
      const v1::GetPlanRequest& request,
      const std::optional<MemberPlace>& caller);

  const Clock* const clock_;
  const uint64_t term_;
  mutable absl::Mutex mu_;
  JobCore core_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int held_calls_ ABSL_GUARDED_BY(mu_) = 0;      // of members
  int observers_held_ ABSL_GUARDED_BY(mu_) = 0;  // calls of observers
};

}  // namespace tributary
