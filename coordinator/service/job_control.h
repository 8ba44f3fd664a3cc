#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/telemetry/histogram.h"
#include "coordinator/core/checkpoint_ledger.h"
#include "coordinator/core/evaluations.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/progress.h"
#include "coordinator/core/rendezvous.h"
#include "coordinator/service/job_update.h"
#include "coordinator/service/put_weights.h"

namespace tributary {

// Guards the coordinator's core objects with one lock. Every public function
// may be called from any thread; only those with a timeout wait.
//
// State is written ahead: every change is saved before it is answered, shown or
// acted upon. While saving fails, heartbeats are answered with the previous
// state and every other call with Unavailable, and each Tick retries. After
// loss_timeout the job fails. Evaluations and the newest checkpoint are saved
// too, but the job does not wait for them.
//
// Each coordinator of a job has a term, one higher than its predecessor's. A
// coordinator that hears of a higher term ends at once and saves nothing.
class JobControl {
 public:
  // Saves what a later coordinator needs to continue. Called with the lock held
  // after a change. OK: the state is on disk.
  using SaveState = std::function<absl::Status(const v1::CoordinatorState&)>;
  struct Options {
    JobState::Options state;
    const Clock* clock = nullptr;
    SaveState save;  // may be null
    // The state that an earlier coordinator of this job saved, or null, and the
    // steps that it recorded.
    const v1::CoordinatorState* restored = nullptr;
    RecordedSteps recorded;
    int64_t started_micros = 0;  // of the job, since 1970, UTC
  };

  explicit JobControl(Options options);

  // The service's calls. They validate their requests.
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request);
  absl::Status DeclareModel(const v1::DeclareModelRequest& request);
  absl::StatusOr<v1::Plan> GetPlan(const v1::GetPlanRequest& request);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      const v1::HeartbeatRequest& request);
  absl::Status ReportEvaluation(const v1::ReportEvaluationRequest& request);
  absl::StatusOr<v1::ExchangeResponse> Exchange(
      const v1::ExchangeRequest& request);
  absl::Status Put(const v1::PutWeightsRequest& request);
  v1::JobStatusResponse Snapshot() const;
  // Seconds that each checkpoint took, measured at its slowest writer.
  const Histogram& checkpoint_seconds() const { return checkpoint_seconds_; }

  // Calls of the process that runs the coordinator.
  //
  // Ends hold_start. The argument is the directory for checkpoints; empty:
  // none.
  void AllowStart(const std::string& checkpoint_directory);
  // A member's process is known to have ended.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how);
  JobUpdate WaitForUpdate(absl::Duration timeout);
  JobTotals Totals() const;
  void RequestStop();
  void Fail(absl::string_view why);
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
  void SetWaits(const std::string& what);
  void Close();  // ends every wait
  bool closed() const;
  bool deposed() const;  // another coordinator of this job has a higher term
  bool saved() const;    // every change is on disk
  uint64_t term() const { return term_; }

 private:
  bool InForceLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // The ranks whose final weights are missing once all workers have finished.
  std::vector<uint32_t> WeightsWantedLocked() const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void WantWeightsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReadyToSaveLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  std::string MessageLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool HasUpdateLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Call it after every change: saves the change, then publishes it.
  void PublishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes a change for a call and answers the call once the change is saved.
  template <typename Change>
  auto Answer(const Change& change) -> decltype(change());
  void NoteLocked(std::string notice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Resets everything that belongs to a plan when a new plan is in force.
  void BeginPlanLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SaveStateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::CoordinatorState StateLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Why the newest state must not be shown yet; OK: it may.
  absl::Status HeldLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  v1::JobPhase PhaseLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return HeldLocked().ok() ? state_.phase() : published_.phase();
  }
  absl::StatusOr<v1::HeartbeatResponse> BeatLocked(
      const v1::HeartbeatRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayTakeLocked(const v1::HeartbeatRequest& request) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Renews the sender's lease and ignores its reports.
  absl::StatusOr<v1::HeartbeatResponse> HeldBeatLocked(
      const v1::HeartbeatRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After a restart of the coordinator: finds the step that this rank's reports
  // continue from.
  absl::Status FindReportsLocked(const v1::HeartbeatRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stops waiting for the reports of ranks that finished and exited before this
  // coordinator heard from them.
  void GiveUpReportsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Records the time of the last progress.
  void NoteProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns how many reports, from the front, are decided. The sender keeps the
  // others, in case a restarted coordinator needs them again.
  uint32_t TakeCheckpointsLocked(const v1::HeartbeatRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteUnreadableLocked(const v1::Plan& plan, uint32_t index,
                            const std::string& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether another call may wait here. The limit is the number of members.
  bool MayHoldLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  int64_t StepOfLocked(const Place& place) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const SaveState save_;
  const uint64_t term_;
  const int64_t started_micros_;
  Histogram checkpoint_seconds_{Histogram::SecondsBounds()};

  mutable absl::Mutex mu_;
  JobState state_ ABSL_GUARDED_BY(mu_);
  Progress progress_ ABSL_GUARDED_BY(mu_);
  Evaluations evaluations_ ABSL_GUARDED_BY(mu_);
  int64_t noted_step_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t progress_micros_ ABSL_GUARDED_BY(mu_) = 0;  // when that step ended
  int64_t begin_micros_ ABSL_GUARDED_BY(mu_) = 0;     // when training began
  CheckpointLedger ledger_ ABSL_GUARDED_BY(mu_);
  uint64_t ledger_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // the ledger's plan
  Rendezvous rendezvous_ ABSL_GUARDED_BY(mu_);
  PutWeights put_weights_ ABSL_GUARDED_BY(mu_);
  std::optional<UnreadableCheckpoint> unreadable_ ABSL_GUARDED_BY(mu_);
  uint64_t wanted_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // weights asked for again
  std::vector<std::string> notices_ ABSL_GUARDED_BY(mu_);
  std::set<uint32_t> unheard_ ABSL_GUARDED_BY(mu_);  // silent since a restore
  Saving saving_ ABSL_GUARDED_BY(mu_);
  uint64_t deposed_by_ ABSL_GUARDED_BY(mu_) = 0;          // its term; 0: none
  v1::HeartbeatResponse published_ ABSL_GUARDED_BY(mu_);  // for every member
  v1::JobPhase logged_phase_ ABSL_GUARDED_BY(mu_) = v1::JOB_PHASE_WAITING;
  v1::JobPhase shown_phase_ ABSL_GUARDED_BY(mu_) = v1::JOB_PHASE_UNSPECIFIED;
  std::string waits_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int held_calls_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t taken_over_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // that plan's; 0: none
};

}  // namespace tributary
