// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/strategy.h"
#include "coordinator/core/asked_checkpoint.h"
#include "coordinator/core/job_life.h"
#include "coordinator/core/job_plan.h"
#include "coordinator/core/members/group_breaks.h"
#include "coordinator/core/members/lost_places.h"
#include "coordinator/core/members/membership.h"
#include "coordinator/core/stop_step.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Decides what becomes of one job. The place of a lost worker waits for another
// process or is taken over by a living worker, depending on the job; a worker's
// contributions are a function of its rank. The loss of a server loses state,
// and so does that of a worker if Strategy::worker_loss_rolls_back. Then, once
// the place has a holder again, a new plan with a higher epoch is published,
// and all members go back to a checkpoint.
//
// The job runs once every place is held and the model is declared; then the
// plan is published. It stops in two phases: every worker pauses and reports
// the last step it has begun, and all stop at the highest of these steps, so
// that a synchronous job ends at one common step. When all workers have
// finished, the caller saves the weights and calls life().MarkDone. A plain
// object: events and the current time go in, answers come out.
class JobState {
 public:
  struct Options {
    v1::JobSpec job;  // resolved
    uint64_t job_id = 1;
    uint32_t heartbeat_ms = 100;
    uint32_t lease_ms = 10'000;
    int64_t start_timeout_micros = 600'000'000;  // for all members to join
    // How long a lost member's place may stay empty.
    int64_t loss_timeout_micros = 120'000'000;
    JobStart start;
    // The coordinator's host, named as members name theirs; empty: unknown.
    std::string host;
    bool hold_start = false;     // no plan before AllowStart
    std::string job_key;         // signs members' tickets; empty: no tickets
    std::string checkpoint_key;  // of keyed checksums; empty: there are none
  };

  JobState(Options options, int64_t now_micros);
  // Continues the job of an earlier coordinator in the state that it saved. The
  // timeouts of lost members start anew.
  JobState(Options options, const v1::CoordinatorState& state,
           int64_t now_micros);

  // Save returns the state that the second constructor needs. SaveSmall is
  // cheap. SaveLarge adds the rest: job, model, plan and places.
  // large_revision() increases with each change of these.
  v1::CoordinatorState Save() const;
  v1::CoordinatorState SaveSmall() const;
  void SaveLarge(v1::CoordinatorState* state) const;
  uint64_t large_revision() const {
    return plan_.large_revision() + membership_.revision();
  }

  // FailedPrecondition: the job is over. Other errors as Membership::Register.
  absl::StatusOr<v1::RegisterResponse> Register(
      const v1::RegisterRequest& request, int64_t now_micros);

  // FailedPrecondition when the model differs from the first declaration or the
  // sender has lost its lease. InvalidArgument when no plan can be made of it.
  absl::Status DeclareModel(const v1::DeclareModelRequest& request,
                            int64_t now_micros);

  // Ends hold_start; `checkpoint_directory` empty: no checkpoints are written.
  void AllowStart(const std::string& checkpoint_directory);

  // A checkpoint is complete: the next plan starts from it.
  void SetRestorePoint(int64_t step, const std::string& folder) {
    plan_.SetRestorePoint(step, folder);
  }

  // The checkpoint that the plan starts from cannot be read, for the reason
  // `why`. All members start over from `folder`, or from the beginning if it is
  // empty.
  void GoBack(int64_t step, const std::string& folder, absl::string_view why);

  // True when state is lost or a group is broken: the plan has ended and the
  // next plan is not published yet.
  bool wants_new_plan() const { return plan_.wants_new(); }
  const JobPlan& plans() const { return plan_; }
  // Null before the first plan is published.
  const v1::Plan* plan() const { return plan_.get(); }
  // Whether this plan is the newest and has not ended.
  bool InForce(uint64_t epoch) const {
    return !life_.over() && !wants_new_plan() && plan_.CheckEpoch(epoch).ok();
  }
  // Names what the first plan lacks: "server 1, worker 0, the model".
  std::string Missing() const;

  // Renews a member's lease. Call it before Apply. Errors as Membership::Renew.
  absl::Status Renew(v1::Role role, uint32_t index, uint64_t incarnation,
                     int64_t now_micros);
  // The groups of the current plan cannot continue, although perhaps no rank is
  // lost. A new plan follows once every member has sent a heartbeat again. The
  // job fails when groups have broken too often.
  void BreakGroup(const Place& reporter, absl::string_view why);
  // FailedPrecondition unless the sender is a worker of the current plan.
  absl::Status CheckWorker(uint32_t rank, uint64_t incarnation,
                           uint64_t plan_epoch) const;
  // Applies a heartbeat and returns the orders for its sender. `last_step`: the
  // last step taken from this worker; `steps_taken`: how many of this request's
  // steps were taken.
  v1::HeartbeatResponse Apply(const v1::HeartbeatRequest& request,
                              uint32_t steps_taken, int64_t last_step);
  // Orders for every member: the phase, the plan's epoch and the stop step.
  v1::HeartbeatResponse Orders() const;
  // The orders of a job that is over, for any member, fenced or not.
  v1::HeartbeatResponse OrdersFor(const v1::HeartbeatRequest& request);

  // Ends expired leases. Fails the job when members never join or a lost place
  // stays empty too long. Call it far more often than a lease lasts: a longer
  // pause means that this process was stopped, and renews all leases.
  void Tick(int64_t now_micros);
  // The weights of this finished worker are needed again. If its process has
  // exited, the worker counts as lost.
  void WantAgain(uint32_t rank, int64_t now_micros);
  // Call it if a process is known to be gone: its lease need not expire first.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how, int64_t now_micros);
  // Takes a checkpoint of the next common step. Ignored before the first plan,
  // and when the job stops or is over.
  void AskCheckpoint();
  // Lets the workers go on once all of them have finished the asked
  // checkpoint's step and the servers have their snapshots.
  void ReleaseWorkers();
  // Stops the job. Before the first plan it has no step to stop at and fails.
  void RequestStop();
  // Stops after this step, where all workers wait. Ignored if it stops already.
  void StopEarly(int64_t step, std::string why);

  JobLife& life() { return life_; }
  const JobLife& life() const { return life_; }
  const StopStep& stop() const { return stop_; }
  const AskedCheckpoint& asked() const { return asked_; }
  int64_t total_steps() const { return plan_.declaration().total_steps(); }
  int64_t final_step() const { return stop_.get().value_or(total_steps()); }
  // An earlier coordinator recorded this step: the job stops there or later.
  void KnowBegun(int64_t step) { stop_.KnowBegun(step); }
  int64_t restore_step() const { return plan_.restore_step(); }
  uint64_t workers_lost() const { return workers_lost_; }
  uint64_t servers_lost() const { return servers_lost_; }
  // Names what the job waits for while a place is empty; empty: nothing.
  v1::Wait WaitsFor(int64_t now_micros) const;
  // When the first of these places was lost, or the groups broke or, before the
  // first plan, the job began; nullopt: none of these applies.
  std::optional<int64_t> WaitsSinceMicros() const;
  // Takes the messages about losses and returns since the last call.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }
  const Options& options() const { return options_; }
  const Membership& membership() const { return membership_; }

 private:
  void Lose(const Place& place, absl::string_view how, int64_t now_micros);
  // Whether a place is lost, or empty because its worker had finished.
  bool IsNoted(const Place& place) const {
    return place.alive || losses_.Contains(place.role, place.index);
  }
  // The first plan needs every member; a later one needs every server only if a
  // worker may join at any time.
  void PublishPlanWhenComplete();
  void StartOver();
  void RollBackWorkers(int64_t now_micros);
  void AdoptLost();
  void SettleStopStep();
  void SettleAskedCheckpoint();
  void BeginToStop();

  const Options options_;
  const Strategy strategy_;
  const int64_t start_micros_;
  int64_t last_tick_micros_;
  Membership membership_;
  JobPlan plan_;
  StopStep stop_;
  AskedCheckpoint asked_;
  LostPlaces losses_;
  JobLife life_;
  GroupBreaks breaks_;
  uint64_t workers_lost_ = 0;
  uint64_t servers_lost_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace tributary
