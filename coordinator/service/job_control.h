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

// The one lock around the coordinator's cores. Every public function may be
// called from any thread; none waits but those that take a time.
//
// State is written ahead: whatever has changed is saved before anything of it
// is answered, shown or acted upon. While it cannot be saved, heartbeats are
// answered with the state before and every other call with Unavailable; the
// next Tick tries again. After loss_timeout the job fails. Evaluations and the
// newest checkpoint are saved too, but hold nothing up.
//
// Each coordinator of a job has a term, one higher than the one before. One
// that hears of a higher term than its own ends at once and saves nothing.
class JobControl {
 public:
  // Keeps what a later coordinator needs to go on; called with the lock held,
  // when something has changed. OK: it is on the disk.
  using SaveState = std::function<absl::Status(const v1::CoordinatorState&)>;
  struct Options {
    JobState::Options state;
    const Clock* clock = nullptr;
    SaveState save;  // or none
    // What an earlier coordinator of this job has kept, or none; and the steps
    // that it has recorded.
    const v1::CoordinatorState* restored = nullptr;
    RecordedSteps recorded;
    int64_t started_micros = 0;  // of the job, since 1970, UTC
  };

  explicit JobControl(Options options);

  // The service's calls; requests are checked here.
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
  // Seconds that the checkpoints so far took, each its slowest server's.
  const Histogram& checkpoint_seconds() const { return checkpoint_seconds_; }

  // For whoever runs the coordinator.
  // Ends hold_start. The folder for checkpoints; empty: none.
  void AllowStart(const std::string& checkpoint_directory);
  // A member's process is known to be gone.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how);
  JobUpdate WaitForUpdate(absl::Duration timeout);
  JobTotals Totals() const;
  void RequestStop();
  void Fail(absl::string_view why);
  bool WaitUntilEveryoneKnowsEnd(absl::Duration timeout);

  // For the thread of the leases: waits for `timeout`, less when `Close` is
  // called, then looks at them.
  void Tick(absl::Duration timeout);
  // For the thread that writes: waits at most `timeout` for a manifest, for all
  // workers to have finished, or for `Close`.
  void AwaitWork(absl::Duration timeout);
  // The next manifest to write, if any, and what became of it. False: another
  // plan is in force since, whose steps are others.
  std::optional<PendingManifest> NextManifest();
  bool ManifestWritten(const PendingManifest& pending,
                       const std::string& folder, const absl::Status& status);
  // What a member of the newest plan cannot read, if any, and which
  // checkpoint to take instead; no folder: the beginning.
  std::optional<UnreadableCheckpoint> TakeUnreadable();
  void GoBack(const UnreadableCheckpoint& lost, int64_t step,
              const std::string& folder);
  // Folders of checkpoints that have failed, since the last call.
  std::vector<std::string> TakeFailedCheckpoints();
  // Of a job that is over; empty: it goes on, or takes none.
  std::string CheckpointDirectoryAtEnd() const;
  // A checkpoint that the finished steps came past is not decided yet.
  bool CheckpointOpen() const;
  // The plan, once all workers have finished and the weights can be saved, and
  // after which step.
  bool ReadyToSave(v1::Plan* plan, int64_t* step) const;
  // Whether this plan is the newest and nothing has ended it.
  bool InForce(uint64_t plan_epoch) const;
  // What the ranks have put, of this step. FailedPrecondition: they have not,
  // and are asked for it; the sentence names them.
  absl::StatusOr<FinalWeights> TakePutWeights(int64_t step) const;
  // Ends the job. An error of a plan that is not in force any more does not:
  // its server is lost, and everybody goes back.
  void Saved(uint64_t plan_epoch, const absl::Status& status);
  // Other things than members that the job waits for.
  void SetWaits(const std::string& what);
  void Close();  // ends every wait
  bool closed() const;
  bool deposed() const;  // another coordinator of this job has a higher term
  bool saved() const;    // all that has changed is on the disk
  uint64_t term() const { return term_; }

 private:
  bool InForceLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Ranks that everybody waits for: they have put weights that are not here.
  std::vector<uint32_t> WeightsWantedLocked() const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void WantWeightsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReadyToSaveLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  std::string MessageLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool HasUpdateLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // After every change: saves it, then lets it be seen.
  void PublishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes a change for a call, and answers the call once it is saved.
  template <typename Change>
  auto Answer(const Change& change) -> decltype(change());
  void NoteLocked(std::string notice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What belongs to a plan begins anew with another one.
  void BeginPlanLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SaveStateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::CoordinatorState StateLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Why nothing may be seen of the newest state; OK: it may.
  absl::Status HeldLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  v1::JobPhase PhaseLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return HeldLocked().ok() ? state_.phase() : published_.phase();
  }
  absl::StatusOr<v1::HeartbeatResponse> BeatLocked(
      const v1::HeartbeatRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayTakeLocked(const v1::HeartbeatRequest& request) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Keeps the sender's lease and takes nothing from it.
  absl::StatusOr<v1::HeartbeatResponse> HeldBeatLocked(
      const v1::HeartbeatRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Where this rank goes on with its reports after a coordinator's end.
  absl::Status FindReportsLocked(const v1::HeartbeatRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of a rank that had finished, and is gone since, no report comes any more.
  void GiveUpReportsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Remembers when progress was last seen.
  void NoteProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns how many, from the front, are decided: the sender keeps the others
  // for another coordinator that may have to ask for them again.
  uint32_t TakeCheckpointsLocked(const v1::HeartbeatRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteUnreadableLocked(const v1::Plan& plan, uint32_t index,
                            const std::string& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Another call may wait here: at a time as many do as the job has members.
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
  int64_t progress_micros_ ABSL_GUARDED_BY(mu_) = 0;  // of that step's end
  int64_t begin_micros_ ABSL_GUARDED_BY(mu_) = 0;     // of training
  CheckpointLedger ledger_ ABSL_GUARDED_BY(mu_);
  uint64_t ledger_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // of its plan
  Rendezvous rendezvous_ ABSL_GUARDED_BY(mu_);
  PutWeights put_weights_ ABSL_GUARDED_BY(mu_);
  std::optional<UnreadableCheckpoint> unreadable_ ABSL_GUARDED_BY(mu_);
  uint64_t wanted_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // of weights, a plan's
  std::vector<std::string> notices_ ABSL_GUARDED_BY(mu_);
  std::set<uint32_t> unheard_ ABSL_GUARDED_BY(mu_);  // ranks, since a restore
  Saving saving_ ABSL_GUARDED_BY(mu_);
  uint64_t deposed_by_ ABSL_GUARDED_BY(mu_) = 0;          // a term
  v1::HeartbeatResponse published_ ABSL_GUARDED_BY(mu_);  // for every member
  v1::JobPhase logged_phase_ ABSL_GUARDED_BY(mu_) = v1::JOB_PHASE_WAITING;
  v1::JobPhase shown_phase_ ABSL_GUARDED_BY(mu_) = v1::JOB_PHASE_UNSPECIFIED;
  std::string waits_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int held_calls_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t taken_over_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // plan's; 0: none
};

}  // namespace tributary
