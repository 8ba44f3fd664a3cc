// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/core/job_parts.h"
#include "coordinator/core/members/job_losses.h"
#include "coordinator/core/steps/common_steps.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Decides what becomes of one job. It runs once every place is held and the
// model is declared: then a plan is published. When a loss or a broken group
// ends the plan (JobLosses), a new plan with a higher epoch is published once
// the places have holders again, and all members go back to a checkpoint.
// CommonSteps says where the job stops. When all workers have finished, the
// caller saves the weights and calls life().MarkDone. A plain object: events
// and the current time go in, answers come out.
class JobState {
 public:
  using Options = JobStateOptions;

  JobState(Options options, int64_t now_micros);
  // Continues the job of an earlier coordinator in the state that it saved. The
  // timeouts of lost members start anew.
  JobState(Options options, const v1::CoordinatorState& state,
           int64_t now_micros);
  JobState(const JobState&) = delete;  // its parts point to each other
  JobState& operator=(const JobState&) = delete;

  // Save returns the state that the second constructor needs. SaveSmall is
  // cheap. SaveLarge adds the rest: job, model, plan and places.
  // large_revision() increases with each change of these.
  v1::CoordinatorState Save() const;
  v1::CoordinatorState SaveSmall() const;
  void SaveLarge(v1::CoordinatorState* state) const;
  uint64_t large_revision() const {
    return job_.plan.large_revision() + job_.membership.revision();
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

  // The checkpoint that the plan starts from cannot be read, for the reason
  // `why`. All members start over from `folder`, or from the beginning if it is
  // empty.
  void GoBack(int64_t step, const std::string& folder, absl::string_view why);

  // Null before the first plan is published.
  const v1::Plan* plan() const { return job_.plan.get(); }
  // Whether this plan is the newest and has not ended.
  bool InForce(uint64_t epoch) const {
    return !job_.life.over() && !job_.plan.wants_new() &&
           job_.plan.CheckEpoch(epoch).ok();
  }
  // Names what the first plan lacks: "server 1, worker 0, the model".
  std::string Missing() const;

  // Renews a member's lease. Call it before Apply. Errors as Membership::Renew.
  absl::Status Renew(v1::Role role, uint32_t index, uint64_t incarnation,
                     int64_t now_micros);
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
  JobLife& life() { return job_.life; }
  const JobLife& life() const { return job_.life; }
  CommonSteps& steps() { return steps_; }
  const CommonSteps& steps() const { return steps_; }
  JobLosses& losses() { return losses_; }
  const JobLosses& losses() const { return losses_; }
  JobPlan& plans() { return job_.plan; }
  const JobPlan& plans() const { return job_.plan; }
  const Options& options() const { return job_.options; }
  const Membership& membership() const { return job_.membership; }

  // Names what the job waits for while a place is empty; empty: nothing.
  v1::Wait WaitsFor(int64_t now_micros) const;
  // When the first of these places was lost, or the groups broke or, before the
  // first plan, the job began; nullopt: none of these applies.
  std::optional<int64_t> WaitsSinceMicros() const;
  // Takes the messages about losses and returns since the last call.
  std::vector<std::string> TakeNotices() {
    return std::exchange(job_.notices, {});
  }

 private:
  // The first plan needs every member; a later one needs every server only if a
  // worker may join at any time.
  void PublishPlanWhenComplete();
  void StartOver();

  const int64_t start_micros_;
  int64_t last_tick_micros_;
  JobParts job_;
  CommonSteps steps_;
  JobLosses losses_;
};

}  // namespace tributary
