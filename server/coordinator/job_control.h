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
#include "common/clock.h"
#include "common/telemetry/histogram.h"
#include "server/coordinator/checkpoint_ledger.h"
#include "server/coordinator/evaluations.h"
#include "server/coordinator/job_state.h"
#include "server/coordinator/progress.h"
#include "server/coordinator/put_weights.h"
#include "server/coordinator/rendezvous.h"

namespace tributary {

// What has happened since the last look.
struct JobUpdate {
  std::vector<StepRecord> steps;              // in order, each once
  std::vector<EvaluationRecord> evaluations;  // after the steps they evaluate
  v1::JobPhase phase = v1::JOB_PHASE_WAITING;
  std::string message;      // WAITING: for whom; FAILED: why
  int64_t total_steps = 0;  // this and below: 0 before the model is declared
  int64_t steps_per_epoch = 0;
  std::vector<std::string> notices;  // sentences about losses and checkpoints
};

// What a whole run came to.
struct JobTotals {
  int64_t steps = 0;  // finished by every worker
  int64_t epochs = 0;
  uint64_t samples = 0;
  double training_seconds = 0;  // of the steps alone
  double final_loss = 0;        // of the last step
  uint64_t bytes_sent = 0;      // by the workers
  uint64_t bytes_received = 0;  // by the workers
  bool stopped = false;         // before all steps, on request
  int64_t start_step = 0;       // where a resumed run began
  int64_t checkpoint_step = 0;  // of the newest complete one; 0: none
  uint64_t rollbacks = 0;
  uint64_t workers_lost = 0;
  uint64_t servers_lost = 0;
};

// A checkpoint of which every file is there.
struct PendingManifest {
  std::string directory;
  v1::CheckpointManifest manifest;
  uint64_t plan_epoch = 0;  // under which its step was made
};

// A member cannot read the checkpoint that the plan begins with.
struct UnreadableCheckpoint {
  uint64_t plan_epoch = 0;
  int64_t step = 0;
  std::string folder;
  std::string directory;  // where the job writes; empty: nowhere
  std::string why;        // "server 1: FILE: byte ..."
};

// The one lock around the coordinator's cores. Every public function may be
// called from any thread; none waits but those that take a time.
class JobControl {
 public:
  // Keeps what a later coordinator needs to go on; called with the lock held,
  // when something has changed.
  using SaveState = std::function<absl::Status(const v1::CoordinatorState&)>;
  struct Options {
    JobState::Options state;
    const Clock* clock = nullptr;
    SaveState save;  // or none
    // What an earlier coordinator of this job has kept, or none; and the steps
    // that it has recorded.
    const v1::CoordinatorState* restored = nullptr;
    int64_t recorded_step = 0;
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
  // Where the checkpoints are of a job that is over; empty: it goes on, or has
  // none.
  std::string CheckpointDirectoryAtEnd() const;
  // A checkpoint that the finished steps came past is not decided yet.
  bool CheckpointOpen() const;
  // The plan, once all workers have finished and the weights can be saved, and
  // after which step.
  bool ReadyToSave(v1::Plan* plan, int64_t* step) const;
  // Whether this plan is the newest and nothing has ended it.
  bool InForce(uint64_t plan_epoch) const;
  // What rank 0 has put, of this step; FailedPrecondition: it has not.
  absl::StatusOr<FinalWeights> TakePutWeights(int64_t step) const;
  // Ends the job. An error of a plan that is not in force any more does not:
  // its server is lost, and everybody goes back.
  void Saved(uint64_t plan_epoch, const absl::Status& status);
  void Close();  // ends every wait
  bool closed() const;

 private:
  bool InForceLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool ReadyToSaveLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  std::string MessageLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool HasUpdateLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Logs and remembers a change of phase.
  void NotePhaseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What belongs to a plan begins anew with another one.
  void BeginPlanLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SaveStateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Where this rank goes on with its reports after a coordinator's end.
  absl::Status FindReportsLocked(const v1::HeartbeatRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeCheckpointsLocked(const v1::HeartbeatRequest& request)
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
  std::vector<std::string> notices_ ABSL_GUARDED_BY(mu_);
  std::set<uint32_t> unheard_ ABSL_GUARDED_BY(mu_);  // ranks, since a restore
  std::string saved_state_ ABSL_GUARDED_BY(mu_);
  v1::JobPhase logged_phase_ ABSL_GUARDED_BY(mu_) = v1::JOB_PHASE_WAITING;
  v1::JobPhase shown_phase_ ABSL_GUARDED_BY(mu_) = v1::JOB_PHASE_UNSPECIFIED;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int held_calls_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t taken_over_epoch_ ABSL_GUARDED_BY(mu_) = 0;  // plan's; 0: none
};

}  // namespace tributary
