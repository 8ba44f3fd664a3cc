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
    : options_(std::move(options)),
      strategy_(StrategyOf(options_.job)),
      start_micros_(now_micros),
      last_tick_micros_(now_micros),
      membership_(options_.job.cluster().servers(),
                  options_.job.cluster().workers(),
                  int64_t{options_.lease_ms} * 1000),
      plan_(options_.job, options_.job_id, options_.start,
            !options_.hold_start),
      stop_(StepCountOf(options_.job).steps_an_update),
      asked_(StepCountOf(options_.job).steps_an_update),
      breaks_(options_.loss_timeout_micros) {}

JobState::JobState(Options options, const v1::CoordinatorState& state,
                   int64_t now_micros)
    : JobState(std::move(options), now_micros) {
  membership_.Restore(state, now_micros);
  plan_.Restore(state);
  stop_.Restore(state);
  asked_.Restore(state);
  life_.Restore(state);
  workers_lost_ = state.workers_lost();
  servers_lost_ = state.servers_lost();
  if (plan() == nullptr) return;
  for (const Place& place : membership_.places()) {
    if (place.alive || place.finished) continue;
    losses_.Add(place, membership_.LastStepOf(place), now_micros);
  }
}

v1::CoordinatorState JobState::Save() const {
  v1::CoordinatorState state = SaveSmall();
  SaveLarge(&state);
  return state;
}

void JobState::SaveLarge(v1::CoordinatorState* state) const {
  *state->mutable_job() = options_.job;
  plan_.SaveLarge(state);
  membership_.Save(state);
}

v1::CoordinatorState JobState::SaveSmall() const {
  v1::CoordinatorState state;
  state.set_job_id(options_.job_id);
  state.set_job_key(options_.job_key);
  state.set_checkpoint_key_id(CheckpointKeyId(options_.checkpoint_key));
  life_.Save(&state);
  state.set_workers_lost(workers_lost_);
  state.set_servers_lost(servers_lost_);
  plan_.SaveSmall(&state);
  stop_.Save(&state);
  asked_.Save(&state);
  return state;
}

void JobState::AllowStart(const std::string& checkpoint_directory) {
  plan_.AllowStart(checkpoint_directory);
  PublishPlanWhenComplete();
}

void JobState::GoBack(int64_t step, const std::string& folder,
                      absl::string_view why) {
  if (life_.over() || plan() == nullptr) return;
  if (const int64_t since = plan_.course().last().step; step < since) {
    return life_.Fail(absl::StrCat(
        why, "; the batches changed after step ", since,
        ", so the job cannot roll back to step ", step, " by itself",
        folder.empty() ? ""
                       : absl::StrCat("; continue with ",
                                      ShellText({"--resume", folder}))));
  }
  SetRestorePoint(step, folder);
  notices_.push_back(std::string(why));
  plan_.End();
  PublishPlanWhenComplete();
}

absl::StatusOr<v1::RegisterResponse> JobState::Register(
    const v1::RegisterRequest& request, int64_t now_micros) {
  // Observers may join also when the job is over: GetPlan says how it ended.
  if (request.role() == v1::ROLE_OBSERVER) return AdmitObserver(options_);
  if (life_.over()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job \"", options_.job.name(), "\" is over",
                     life_.message().empty() ? "" : ": ", life_.message()));
  }
  const Place* const silent = membership_.ExpelSilentServer(
      request, now_micros - kMissedHeartbeats * 1000 * options_.heartbeat_ms);
  if (silent != nullptr) {
    Lose(*silent, "another process has its address", now_micros);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Place* place,
                             membership_.Register(request, now_micros));
  if (losses_.Remove(*place)) {
    notices_.push_back(absl::StrCat(place->Name(), " takes its place"));
  }
  v1::RegisterResponse response;
  response.set_index(place->index);
  response.set_incarnation(place->incarnation);
  response.set_job_id(options_.job_id);
  *response.mutable_job() = options_.job;
  response.set_heartbeat_ms(options_.heartbeat_ms);
  response.set_lease_ms(options_.lease_ms);
  response.set_recomputes(place->Recomputes(request.arithmetic()));
  if (place->role == v1::ROLE_WORKER) {
    *response.mutable_course() = plan_.CourseToTell();
    response.set_start_step(options_.start.step);
  }
  SetTicket(options_, *place, &response);
  PublishPlanWhenComplete();
  return response;
}

absl::Status JobState::DeclareModel(const v1::DeclareModelRequest& request,
                                    int64_t now_micros) {
  TRIBUTARY_RETURN_IF_ERROR(Renew(v1::ROLE_WORKER, request.rank(),
                                  request.incarnation(), now_micros));
  TRIBUTARY_RETURN_IF_ERROR(plan_.Declare(request, &notices_));
  PublishPlanWhenComplete();
  return absl::OkStatus();
}

void JobState::PublishPlanWhenComplete() {
  if (!plan_.IsDue() || life_.over()) return;
  const bool needs_all =
      plan() == nullptr || strategy_.worker_loss_rolls_back();
  if (!(needs_all ? membership_.Complete() : membership_.ServersComplete())) {
    return;
  }
  // A lost rank breaks its group before its own lease expires. A plan that
  // named it again would only break again.
  if (breaks_.open() && !membership_.AllHeardSince(breaks_.RetryMicros(
                            int64_t{options_.heartbeat_ms} * 1000))) {
    return;
  }
  // A plan that a loss has ended may have advanced since the groups broke.
  if (!breaks_.open() && plan() != nullptr && plan_.HasAdvanced(membership_))
    breaks_.Forget();
  breaks_.Close();
  if (plan() != nullptr) StartOver();
  plan_.Publish(membership_, options_.host);
  life_.Run();
}

void JobState::StartOver() {
  stop_.KnowBegun(membership_.HighestBegun());
  membership_.StartOver();
  for (const Place& worker : membership_.workers()) {
    if (IsNoted(worker)) continue;
    Lose(worker, "it had finished and is wanted again", last_tick_micros_);
  }
  stop_.Reset();
  asked_.Drop();
  notices_.push_back(plan_.RestartNotice(stop_.furthest()));
}

std::string JobState::Missing() const {
  return membership_.Missing(plan_.declared());
}

absl::Status JobState::Renew(v1::Role role, uint32_t index,
                             uint64_t incarnation, int64_t now_micros) {
  return membership_.Renew(role, index, incarnation, now_micros).status();
}

absl::Status JobState::CheckWorker(uint32_t rank, uint64_t incarnation,
                                   uint64_t plan_epoch) const {
  TRIBUTARY_RETURN_IF_ERROR(membership_.CheckWorker(rank, incarnation));
  return plan_.CheckEpoch(plan_epoch);
}

v1::HeartbeatResponse JobState::Apply(const v1::HeartbeatRequest& request,
                                      uint32_t steps_taken, int64_t last_step) {
  const Place& place = request.role() == v1::ROLE_SERVER
                           ? membership_.servers()[request.index()]
                           : membership_.workers()[request.index()];
  // Reports about an earlier plan no longer count.
  const bool in_force =
      plan_.CheckEpoch(std::max<uint64_t>(1, request.plan_epoch())).ok();
  const int64_t begun_step = membership_.Report(request, in_force);
  if (!request.error().empty()) {
    const std::string why =
        absl::StrCat(place.Name(), " failed: ", ShortSentence(request.error()));
    if (plan() == nullptr ||
        (plan_.rollbacks() == 0 && !plan_.HasAdvanced(membership_))) {
      life_.Refuse(why, request.error_cause());
    } else {
      life_.Fail(why, request.error_cause());
    }
  }
  if (!in_force) stop_.KnowBegun(begun_step);
  if (request.role() == v1::ROLE_WORKER && in_force) {
    // After a plan has ended all ranks train again, also those that finish now.
    if (request.finished() && !place.finished && !wants_new_plan() &&
        static_cast<int>(steps_taken) == request.steps_size()) {
      membership_.SetFinished(place.index, true);
      if (last_step != final_step()) {
        life_.Fail(absl::StrCat(place.Name(), " finished after step ",
                                last_step, " of ", final_step()));
      }
    }
    if (request.program_ended() && !life_.over()) {
      stop_.RequestForProgram();
      BeginToStop();
    }
    if (request.held() != 0 && request.held() == asked_.hold() &&
        asked_.unsettled()) {
      membership_.SetPaused(place.index, begun_step);
    }
    if ((request.paused() || request.program_ended()) &&
        life_.phase() == v1::JOB_PHASE_STOPPING) {
      membership_.SetPaused(place.index, begun_step);
    }
    SettleStopStep();
    SettleAskedCheckpoint();
    if (request.broken_group_epoch() == plan()->epoch()) {
      BreakGroup(place, ShortSentence(request.broken_group()));
    }
  }
  if (!request.leaving().empty()) {
    MemberLost(request.role(), request.index(), place.holder.pid(),
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
  orders.set_phase(life_.phase());
  orders.set_message(life_.message());
  if (stop_.get()) orders.set_stop_step(*stop_.get());
  orders.set_hold(asked_.hold());
  orders.set_checkpoint_step(asked_.step());
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
  if (life_.over()) membership_.TellEnd(request);
  return response;
}

void JobState::SettleStopStep() {
  if (!life_.over()) stop_.Settle(membership_.workers(), total_steps());
}

// Workers that paused under a hold are no longer paused after it.
void JobState::SettleAskedCheckpoint() {
  if (!life_.over() && !stop_.requested() &&
      asked_.Settle(membership_.workers(), plan()->start_step(),
                    total_steps())) {
    membership_.ForgetPauses();
  }
}

void JobState::AskCheckpoint() {
  if (life_.over() || plan() == nullptr || wants_new_plan() ||
      stop_.requested() || asked_.hold() > 0) {
    return;
  }
  membership_.ForgetPauses();
  asked_.Ask();
}

void JobState::ReleaseWorkers() {
  if (asked_.hold() > 0 && asked_.step() > 0) asked_.Release();
}

// A checkpoint whose step is not settled is left to the stop.
void JobState::BeginToStop() {
  life_.BeginToStop();
  if (asked_.unsettled()) asked_.Drop();
}

void JobState::RequestStop() {
  if (stop_.requested() || life_.over()) return;
  stop_.Request();
  if (plan() == nullptr) {
    return life_.Fail(
        absl::StrCat("stopped before the first step, while waiting for ",
                     Missing()),
        v1::CAUSE_STOP);
  }
  BeginToStop();
  SettleStopStep();
}

void JobState::StopEarly(int64_t step, std::string why) {
  if (life_.over() || !stop_.StopEarly(step, total_steps())) return;
  BeginToStop();
  notices_.push_back(std::move(why));
}

void JobState::Tick(int64_t now_micros) {
  if (life_.over()) return;
  const int64_t pause_micros = now_micros - last_tick_micros_;
  last_tick_micros_ = now_micros;
  if (pause_micros > int64_t{options_.lease_ms} * 1000 / 2) {
    membership_.RenewAll(now_micros);
  }
  for (const Place* lost : membership_.Expire(now_micros)) {
    Lose(*lost,
         absl::StrFormat("no heartbeat for %.1f s",
                         Seconds(now_micros - lost->last_heartbeat_micros)),
         now_micros);
  }
  const std::string empty =
      losses_.EmptyFor(options_.loss_timeout_micros, now_micros);
  if (!empty.empty()) life_.Fail(empty);
  AdoptLost();
  if (breaks_.open()) PublishPlanWhenComplete();
  if (plan() == nullptr &&
      now_micros - start_micros_ >= options_.start_timeout_micros) {
    life_.Fail(absl::StrFormat("waited %.1f s in vain for %s",
                               Seconds(now_micros - start_micros_), Missing()));
  }
}

std::optional<int64_t> JobState::WaitsSinceMicros() const {
  if (plan() == nullptr) return start_micros_;
  const std::optional<int64_t> lost = losses_.SinceMicros();
  return lost ? lost : breaks_.since_micros();
}

v1::Wait JobState::WaitsFor(int64_t now_micros) const {
  v1::Wait wait = WaitFor(losses_.WaitsFor(now_micros));
  if (!wait.text().empty()) {
    wait.set_cause(v1::CAUSE_PLACE);
  } else if (breaks_.open()) {
    wait.set_text(breaks_.WaitsFor(now_micros));
  } else if (wants_new_plan()) {
    wait.set_text(plan_.may_start()
                      ? "waiting for a new plan"
                      : "waiting for the coordinator's run directory");
  }
  return wait;
}

}  // namespace tributary
