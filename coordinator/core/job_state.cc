// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/job_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/mutation.h"
#include "common/checkpoint/manifest.h"
#include "common/job/job_options.h"
#include "common/status/cause.h"
#include "common/status/shell_text.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/member_ticket.h"

namespace tributary {
namespace {

// A server that has missed this many heartbeats loses its address to another
// process of its host.
constexpr int64_t kMissedHeartbeats = 3;

double Seconds(int64_t micros) { return static_cast<double>(micros) / 1e6; }

v1::RegisterResponse AdmitObserver(const JobState::Options& options) {
  v1::RegisterResponse response;
  response.set_job_id(options.job_id);
  response.set_ticket(MakeTicket(
      options.job_key, {.job_id = options.job_id, .role = v1::ROLE_OBSERVER}));
  return response;
}

void SetTicket(const JobState::Options& options, const Place& place,
               v1::RegisterResponse* response) {
  if (options.job_key.empty()) return;
  response->set_ticket(
      MakeTicket(options.job_key, {.job_id = options.job_id,
                                   .role = place.role,
                                   .index = place.index,
                                   .incarnation = place.incarnation}));
  if (place.role == v1::ROLE_SERVER) response->set_job_key(options.job_key);
  response->set_checkpoint_key(options.checkpoint_key);
}

}  // namespace

JobState::JobState(Options options, int64_t now_micros)
    : start_micros_(now_micros),
      last_tick_micros_(now_micros),
      job_(std::move(options)),
      steps_(&job_),
      losses_(&job_, &steps_) {}

JobState::JobState(Options options, const v1::CoordinatorState& state,
                   int64_t now_micros)
    : JobState(std::move(options), now_micros) {
  job_.membership.Restore(state, now_micros);
  job_.plan.Restore(state);
  job_.life.Restore(state);
  steps_.Restore(state);
  losses_.Restore(state, now_micros);
}

v1::CoordinatorState JobState::Save() const {
  v1::CoordinatorState state = SaveSmall();
  SaveLarge(&state);
  return state;
}

void JobState::SaveLarge(v1::CoordinatorState* state) const {
  *state->mutable_job() = job_.options.job;
  job_.plan.SaveLarge(state);
  job_.membership.Save(state);
}

v1::CoordinatorState JobState::SaveSmall() const {
  v1::CoordinatorState state;
  state.set_job_id(job_.options.job_id);
  state.set_job_key(job_.options.job_key);
  state.set_checkpoint_key_id(CheckpointKeyId(job_.options.checkpoint_key));
  job_.life.Save(&state);
  job_.plan.SaveSmall(&state);
  steps_.Save(&state);
  losses_.Save(&state);
  return state;
}

void JobState::AllowStart(const std::string& checkpoint_directory) {
  job_.plan.AllowStart(checkpoint_directory);
  PublishPlanWhenComplete();
}

void JobState::GoBack(int64_t step, const std::string& folder,
                      absl::string_view why) {
  if (job_.life.over() || plan() == nullptr) return;
  if (const int64_t since = job_.plan.course().last().step; step < since) {
    return job_.life.Fail(absl::StrCat(
        why, "; the batches changed after step ", since,
        ", so the job cannot roll back to step ", step, " by itself",
        folder.empty() ? ""
                       : absl::StrCat("; continue with ",
                                      ShellText({"--resume", folder}))));
  }
  job_.plan.SetRestorePoint(step, folder);
  job_.notices.push_back(std::string(why));
  job_.plan.End();
  PublishPlanWhenComplete();
}

absl::StatusOr<v1::RegisterResponse> JobState::Register(
    const v1::RegisterRequest& request, int64_t now_micros) {
  // Observers may join also when the job is over: GetPlan says how it ended.
  if (request.role() == v1::ROLE_OBSERVER) return AdmitObserver(job_.options);
  if (job_.life.over()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job \"", job_.options.job.name(), "\" is over",
        job_.life.message().empty() ? "" : ": ", job_.life.message()));
  }
  const Place* const silent = job_.membership.ExpelSilentServer(
      request,
      now_micros - kMissedHeartbeats * 1000 * job_.options.heartbeat_ms);
  if (silent != nullptr) {
    losses_.Lose(*silent, "another process has its address", now_micros);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Place* place,
                             job_.membership.Register(request, now_micros));
  losses_.Return(*place);
  v1::RegisterResponse response;
  response.set_index(place->index);
  response.set_incarnation(place->incarnation);
  response.set_job_id(job_.options.job_id);
  *response.mutable_job() = job_.options.job;
  response.set_heartbeat_ms(job_.options.heartbeat_ms);
  response.set_lease_ms(job_.options.lease_ms);
  response.set_recomputes(place->Recomputes(request.arithmetic()));
  if (place->role == v1::ROLE_WORKER) {
    *response.mutable_course() = job_.plan.CourseToTell();
    response.set_start_step(job_.options.start.step);
  }
  SetTicket(job_.options, *place, &response);
  PublishPlanWhenComplete();
  return response;
}

absl::Status JobState::DeclareModel(const v1::DeclareModelRequest& request,
                                    int64_t now_micros) {
  TRIBUTARY_RETURN_IF_ERROR(Renew(v1::ROLE_WORKER, request.rank(),
                                  request.incarnation(), now_micros));
  TRIBUTARY_RETURN_IF_ERROR(job_.plan.Declare(request, &job_.notices));
  PublishPlanWhenComplete();
  return absl::OkStatus();
}

void JobState::PublishPlanWhenComplete() {
  if (!job_.plan.IsDue() || job_.life.over()) return;
  const bool needs_all =
      plan() == nullptr || job_.strategy.worker_loss_rolls_back();
  if (!(needs_all ? job_.membership.Complete()
                  : job_.membership.ServersComplete())) {
    return;
  }
  if (!losses_.MayFormGroups()) return;
  losses_.FormGroups();
  if (plan() != nullptr) StartOver();
  job_.plan.Publish(job_.membership, job_.options.host);
  job_.life.Run();
}

void JobState::StartOver() {
  steps_.KnowBegun(job_.membership.HighestBegun());
  job_.membership.StartOver();
  losses_.WantAllAgain(last_tick_micros_);
  steps_.StartOver();
  job_.notices.push_back(job_.plan.RestartNotice(steps_.stop().furthest()));
}

std::string JobState::Missing() const {
  return job_.membership.Missing(job_.plan.declared());
}

absl::Status JobState::Renew(v1::Role role, uint32_t index,
                             uint64_t incarnation, int64_t now_micros) {
  return job_.membership.Renew(role, index, incarnation, now_micros).status();
}

absl::Status JobState::CheckWorker(uint32_t rank, uint64_t incarnation,
                                   uint64_t plan_epoch) const {
  TRIBUTARY_RETURN_IF_ERROR(job_.membership.CheckWorker(rank, incarnation));
  return job_.plan.CheckEpoch(plan_epoch);
}

v1::HeartbeatResponse JobState::Apply(const v1::HeartbeatRequest& request,
                                      uint32_t steps_taken, int64_t last_step) {
  const Place& place = request.role() == v1::ROLE_SERVER
                           ? job_.membership.servers()[request.index()]
                           : job_.membership.workers()[request.index()];
  // Reports about an earlier plan no longer count.
  const bool in_force =
      job_.plan.CheckEpoch(std::max<uint64_t>(1, request.plan_epoch())).ok();
  const int64_t begun_step = job_.membership.Report(request, in_force);
  if (!request.error().empty()) {
    const std::string why =
        absl::StrCat(place.Name(), " failed: ", ShortSentence(request.error()));
    if (plan() == nullptr || (job_.plan.rollbacks() == 0 &&
                              !job_.plan.HasAdvanced(job_.membership))) {
      job_.life.Refuse(why, request.error_cause());
    } else {
      job_.life.Fail(why, request.error_cause());
    }
  }
  if (!in_force) steps_.KnowBegun(begun_step);
  if (request.role() == v1::ROLE_WORKER && in_force) {
    // After a plan has ended all ranks train again, also those that finish now.
    if (request.finished() && !place.finished && !job_.plan.wants_new() &&
        static_cast<int>(steps_taken) == request.steps_size()) {
      job_.membership.SetFinished(place.index, true);
      if (last_step != steps_.final_step()) {
        job_.life.Fail(absl::StrCat(place.Name(), " finished after step ",
                                    last_step, " of ", steps_.final_step()));
      }
    }
    steps_.Hear(request, begun_step);
    if (request.broken_group_epoch() == plan()->epoch()) {
      losses_.BreakGroup(place, ShortSentence(request.broken_group()));
    }
  }
  if (!request.leaving().empty()) {
    losses_.MemberLost(request.role(), request.index(), place.holder.pid(),
                       absl::StrCat("it gave its place back: ",
                                    ShortSentence(request.leaving())),
                       place.last_heartbeat_micros);
  }
  v1::HeartbeatResponse response = OrdersFor(request);
  response.set_steps_taken(steps_taken);
  return response;
}

v1::HeartbeatResponse JobState::Orders() const {
  v1::HeartbeatResponse orders;
  orders.set_phase(job_.life.phase());
  orders.set_message(job_.life.message());
  const StopStep& stop = steps_.stop();
  if (stop.get()) orders.set_stop_step(*stop.get());
  orders.set_hold(steps_.asked().hold());
  orders.set_checkpoint_step(steps_.asked().step());
  if (plan() != nullptr) orders.set_plan_epoch(plan()->epoch());
  return orders;
}

v1::HeartbeatResponse JobState::OrdersFor(const v1::HeartbeatRequest& request) {
  v1::HeartbeatResponse response = Orders();
  if (request.role() == v1::ROLE_WORKER) {
    for (uint32_t rank : losses_.AdoptedBy(request.index())) {
      response.add_adopt_ranks(rank);
    }
  }
  if (job_.life.over()) job_.membership.TellEnd(request);
  return response;
}

void JobState::Tick(int64_t now_micros) {
  if (job_.life.over()) return;
  const int64_t pause_micros = now_micros - last_tick_micros_;
  last_tick_micros_ = now_micros;
  if (pause_micros > int64_t{job_.options.lease_ms} * 1000 / 2) {
    job_.membership.RenewAll(now_micros);
  }
  for (const Place* lost : job_.membership.Expire(now_micros)) {
    losses_.Lose(
        *lost,
        absl::StrFormat("no heartbeat for %.1f s",
                        Seconds(now_micros - lost->last_heartbeat_micros)),
        now_micros);
  }
  losses_.Tick(now_micros);
  if (losses_.HasBrokenGroups()) PublishPlanWhenComplete();
  if (plan() == nullptr &&
      now_micros - start_micros_ >= job_.options.start_timeout_micros) {
    job_.life.Fail(absl::StrFormat("waited %.1f s in vain for %s",
                                   Seconds(now_micros - start_micros_),
                                   Missing()));
  }
}

std::optional<int64_t> JobState::WaitsSinceMicros() const {
  return plan() == nullptr ? start_micros_ : losses_.SinceMicros();
}

v1::Wait JobState::WaitsFor(int64_t now_micros) const {
  v1::Wait wait = losses_.WaitsFor(now_micros);
  if (wait.text().empty() && job_.plan.wants_new()) {
    wait.set_text(job_.plan.may_start()
                      ? "waiting for a new plan"
                      : "waiting for the coordinator's run directory");
  }
  return wait;
}

}  // namespace tributary
