#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/core/membership.h"
#include "coordinator/core/regroup_limit.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// What the loss of a member means for whoever started its process.
enum class LossVerdict {
  kFatal,    // the job fails of it, or is over
  kReplace,  // another process in its place goes on
  kGoesOn,   // the others do without it
};

// The life of one job:
//
//   WAITING -> RUNNING -> (STOPPING ->) DONE
//      any of these ------------------> FAILED
//
// A lost worker's place waits for another process, or is taken over by a living
// worker, as the job says: its contributions are a function of its rank, so
// nothing else changes. A lost server takes state with it: once its place is
// held again a new plan is published, with a higher epoch, and everybody starts
// over after the newest checkpoint.
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
    uint64_t lineage = 0;        // of its checkpoints; 0: this job begins one
    uint32_t restored_data = 0;  // the restored manifest's data_checksum
    uint32_t heartbeat_ms = 100;
    uint32_t lease_ms = 10'000;
    int64_t start_timeout_micros = 600'000'000;  // for all members to come
    // For a lost member's place to be taken again.
    int64_t loss_timeout_micros = 120'000'000;
    // Where the job begins: as in Plan.
    int64_t start_step = 0;
    std::string restore_from;
    bool hold_start = false;  // no plan before AllowStart
  };

  JobState(Options options, int64_t now_micros);
  // Goes on where another coordinator of the same job has ended: as it was, but
  // who was known to be lost counts as lost from now on.
  JobState(Options options, const v1::CoordinatorState& state,
           int64_t now_micros);

  // All that the second constructor needs.
  v1::CoordinatorState Save() const;

  // FailedPrecondition when the job is over; else as Membership::Register.
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request, int64_t now_micros);

  // FailedPrecondition when it differs from the first declaration, or comes
  // from a lost member; InvalidArgument when no plan can be made of it.
  absl::Status DeclareModel(const v1::DeclareModelRequest& request,
                            int64_t now_micros);

  // Ends hold_start. The folder for checkpoints; empty: none.
  void AllowStart(const std::string& checkpoint_directory);

  // A checkpoint is complete: who starts over starts there.
  void SetRestorePoint(int64_t step, const std::string& folder);

  // The checkpoint that the plan begins with cannot be read, as `why` says:
  // everybody starts over after another one, or at the beginning.
  void GoBack(int64_t step, const std::string& folder, absl::string_view why);

  // A server is lost, or a group is broken: the plan is over, and the next is
  // not there yet.
  bool wants_new_plan() const { return wants_new_plan_; }
  // Null before it is published.
  const v1::Plan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // What the plan still waits for: "server 1, worker 0, the model".
  std::string Missing() const;

  // Renews the member's lease. Call before its steps are taken.
  absl::Status Renew(const v1::HeartbeatRequest& request, int64_t now_micros);
  // The groups of the plan in force cannot go on, though perhaps nobody is
  // lost: a new plan follows once everybody has been heard again, unless that
  // has been tried too often.
  void BreakGroup(const Place& reporter, absl::string_view why);
  // FailedPrecondition unless this is a worker of the plan in force.
  absl::Status CheckWorker(uint32_t rank, uint64_t incarnation,
                           uint64_t plan_epoch) const;
  // What the heartbeat says, and the orders that answer it. `last_step` is the
  // last that was taken of this worker, `steps_taken` of this request.
  v1::HeartbeatResponse Apply(const v1::HeartbeatRequest& request,
                              uint32_t steps_taken, int64_t last_step);
  // What every member may know: the phase, the plan's epoch, where all stop.
  v1::HeartbeatResponse Orders() const;
  // The orders of a job that is over: any member gets them, fenced or not.
  v1::HeartbeatResponse OrdersFor(const v1::HeartbeatRequest& request);

  // Ends leases that have run out; members that never came, and places that
  // nobody takes again, fail the job. Call it far more often than leases last:
  // a longer pause means that nobody was heard.
  void Tick(int64_t now_micros);
  // This worker has finished; what it has is needed once more. If its process
  // is gone since, it is lost.
  void WantAgain(uint32_t rank, int64_t now_micros);
  // The process is known to be gone: no need to wait for its lease.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how, int64_t now_micros);
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
  // After which workers finish.
  int64_t final_step() const { return stop_step_.value_or(total_steps()); }
  // An earlier coordinator has recorded this step, so the job must not stop
  // before it.
  void KnowBegun(int64_t step) {
    furthest_step_ = std::max(furthest_step_, step);
  }
  int64_t steps_per_epoch() const { return declaration_.steps_per_epoch(); }
  uint32_t data_checksum() const { return declaration_.data_checksum(); }
  int64_t restore_step() const { return restore_step_; }
  const v1::DeclareModelRequest& declaration() const { return declaration_; }
  uint64_t rollbacks() const { return rollbacks_; }
  uint64_t workers_lost() const { return workers_lost_; }
  uint64_t servers_lost() const { return servers_lost_; }
  // What the job waits for while a place is empty; empty: for nobody.
  std::string WaitsFor(int64_t now_micros) const;
  // Sentences for people about losses and returns, since the last call.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }
  const Options& options() const { return options_; }
  uint64_t lineage() const {
    return options_.lineage != 0 ? options_.lineage : options_.job_id;
  }
  const Membership& membership() const { return membership_; }

  bool AllWorkersFinished() const;
  // Everybody who is alive has been told that the job is over.
  bool EveryoneKnowsEnd() const;

 private:
  struct Loss {
    int64_t since_micros = 0;
    int64_t step = 0;
    std::string name;  // of who is gone
  };
  using PlaceKey = std::pair<v1::Role, uint32_t>;

  void Lose(Place& place, absl::string_view how, int64_t now_micros);
  void PublishPlanWhenComplete();
  int64_t HighestBegun() const;  // by any worker
  void WantNewGroup(int64_t now_micros);
  // Nobody of a broken group is lost without having been noticed yet.
  bool EverybodyHeardSinceBreak() const;
  bool AnyWorkerAlive() const;
  // Whether process `pid` holds this rank besides one that it had before.
  bool IsAdopted(uint32_t rank, int64_t pid) const;
  // The ranks that this worker shall take over now.
  std::vector<uint32_t> AdoptedBy(uint32_t worker) const;
  void AdoptLost();
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
  bool may_start_ = true;
  std::string checkpoint_directory_;
  int64_t restore_step_ = 0;
  std::string restore_from_;
  bool wants_new_plan_ = false;
  RegroupLimit regroups_;
  std::optional<int64_t> broken_micros_;  // a group, under the plan in force
  std::map<PlaceKey, Loss> losses_;
  std::map<uint32_t, uint32_t> adopters_;  // lost rank -> worker
  uint64_t rollbacks_ = 0;
  uint64_t workers_lost_ = 0;
  uint64_t servers_lost_ = 0;
  std::vector<std::string> notices_;
  v1::DeclareModelRequest declaration_;  // the first; no parameters: none yet
  bool stop_requested_ = false;
  std::optional<int64_t> stop_step_;
  int64_t furthest_step_ = 0;  // begun before a rollback, or by who is lost
};

}  // namespace tributary
