#include "coordinator/core/job_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "coordinator/core/model_declaration.h"

namespace tributary {
namespace {

// A server that has missed this many heartbeats loses its address to another
// process of its host before its lease expires.
constexpr int64_t kMissedHeartbeats = 3;

}  // namespace

JobState::JobState(Options options, int64_t now_micros)
    : options_(std::move(options)),
      start_micros_(now_micros),
      last_tick_micros_(now_micros),
      membership_(options_.job.cluster().servers(),
                  options_.job.cluster().workers(),
                  int64_t{options_.lease_ms} * 1000),
      may_start_(!options_.hold_start),
      restore_step_(options_.start_step),
      restore_from_(options_.restore_from),
      regroups_(options_.loss_timeout_micros) {}

JobState::JobState(Options options, const v1::CoordinatorState& state,
                   int64_t now_micros)
    : JobState(std::move(options), now_micros) {
  membership_.Restore(state, now_micros);
  declaration_ = state.declaration();
  if (state.has_plan()) {
    plan_ = state.plan();
    checkpoint_directory_ = plan_->checkpoint_directory();
  }
  phase_ = state.phase();
  message_ = state.message();
  stop_requested_ = state.stop_requested();
  restore_step_ = state.restore_step();
  restore_from_ = state.restore_from();
  wants_new_plan_ = state.wants_new_plan();
  rollbacks_ = state.rollbacks();
  workers_lost_ = state.workers_lost();
  servers_lost_ = state.servers_lost();
  furthest_step_ = state.furthest_step();
  if (state.has_stop_step()) stop_step_ = state.stop_step();
  if (!plan_) return;
  for (const std::vector<Place>* places :
       {&membership_.servers(), &membership_.workers()}) {
    for (const Place& place : *places) {
      if (place.alive || place.finished) continue;
      losses_[{place.role, place.index}] = {now_micros, LastStepOf(place),
                                            place.Name()};
    }
  }
}

v1::CoordinatorState JobState::Save() const {
  v1::CoordinatorState state;
  state.set_job_id(options_.job_id);
  state.set_lineage(lineage());
  *state.mutable_job() = options_.job;
  *state.mutable_declaration() = declaration_;
  if (plan_) *state.mutable_plan() = *plan_;
  state.set_phase(phase_);
  state.set_message(message_);
  state.set_stop_requested(stop_requested_);
  state.set_restore_step(restore_step_);
  state.set_restore_from(restore_from_);
  state.set_wants_new_plan(wants_new_plan_);
  state.set_rollbacks(rollbacks_);
  state.set_workers_lost(workers_lost_);
  state.set_servers_lost(servers_lost_);
  state.set_furthest_step(furthest_step_);
  if (stop_step_) state.set_stop_step(*stop_step_);
  membership_.Save(&state);
  return state;
}

void JobState::AllowStart(const std::string& checkpoint_directory) {
  may_start_ = true;
  checkpoint_directory_ = checkpoint_directory;
  PublishPlanWhenComplete();
}

void JobState::SetRestorePoint(int64_t step, const std::string& folder) {
  restore_step_ = step;
  restore_from_ = folder;
}

void JobState::GoBack(int64_t step, const std::string& folder,
                      absl::string_view why) {
  if (over() || !plan_) return;
  SetRestorePoint(step, folder);
  notices_.push_back(std::string(why));
  wants_new_plan_ = true;
  PublishPlanWhenComplete();
}

absl::StatusOr<v1::RegisterResponse> JobState::Register(
    const v1::RegisterRequest& request, int64_t now_micros) {
  if (over()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job \"", options_.job.name(), "\" is over",
                     message_.empty() ? "" : ": ", message_));
  }
  for (Place& server : membership_.servers()) {
    // Two processes of one machine cannot listen on one address, so the earlier
    // holder is gone if it is silent as well. Silence is required because
    // containers may share a host name and an address.
    const int64_t silent_micros = now_micros - server.last_heartbeat_micros;
    if (request.role() == v1::ROLE_SERVER && server.alive &&
        server.holder.address() == request.address() &&
        server.holder.host() == request.host() &&
        server.holder.instance() != request.instance() &&
        silent_micros > kMissedHeartbeats * 1000 * options_.heartbeat_ms) {
      server.alive = false;
      Lose(server, "another process has its address", now_micros);
    }
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Place* place,
                             membership_.Register(request, now_micros));
  if (losses_.erase({request.role(), place->index}) > 0) {
    adopters_.erase(request.role() == v1::ROLE_WORKER ? place->index
                                                      : UINT32_MAX);
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
  PublishPlanWhenComplete();
  return response;
}

absl::Status JobState::DeclareModel(const v1::DeclareModelRequest& request,
                                    int64_t now_micros) {
  TRIBUTARY_RETURN_IF_ERROR(membership_
                                .Renew(v1::ROLE_WORKER, request.rank(),
                                       request.incarnation(), now_micros)
                                .status());
  if (request.total_steps() < 1 || request.steps_per_epoch() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "total_steps and steps_per_epoch must be at least 1, got ",
        request.total_steps(), " and ", request.steps_per_epoch()));
  }
  TRIBUTARY_RETURN_IF_ERROR(CheckDeclaration(request, options_.job));
  if (declaration_.parameters_size() == 0) {
    declaration_ = request;
    declaration_.DiscardUnknownFields();
    if (OtherData(options_.restored_data, request.data_checksum())) {
      notices_.push_back(
          "the training data are not those of the checkpoint: this run does "
          "not end as the one before it would have ended");
    }
    PublishPlanWhenComplete();
    return absl::OkStatus();
  }
  const std::string difference = DeclarationDifference(declaration_, request);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "worker ", request.rank(), " declares ", difference, ", as worker ",
      declaration_.rank(), " does: do both read the same job and data?"));
}

// The first plan needs every member. A later plan of a job with servers needs
// every server only, because a worker may join a running plan at any time.
void JobState::PublishPlanWhenComplete() {
  if (declaration_.parameters_size() == 0 || over() || !may_start_) return;
  if (plan_ && !wants_new_plan_) return;
  if (plan_ && !HasGroups(options_.job) ? !membership_.ServersComplete()
                                        : !membership_.Complete()) {
    return;
  }
  if (broken_micros_ && !EverybodyHeardSinceBreak()) return;
  broken_micros_.reset();
  const uint64_t epoch = plan_ ? plan_->epoch() + 1 : 1;
  if (plan_) {
    ++rollbacks_;
    wants_new_plan_ = false;
    furthest_step_ = std::max(furthest_step_, HighestBegun());
    membership_.StartOver();
    for (Place& worker : membership_.workers()) {
      if (worker.alive || losses_.count({v1::ROLE_WORKER, worker.index}) > 0) {
        continue;
      }
      Lose(worker, "it had finished and is wanted again", last_tick_micros_);
    }
    stop_step_.reset();
    notices_.push_back(
        restore_from_.empty()
            ? absl::StrCat("there is no checkpoint: everybody starts over at "
                           "the beginning, and ",
                           furthest_step_, " steps are computed again")
            : absl::StrCat("everybody goes back to step ", restore_step_,
                           ", checkpoint ", restore_from_));
  }
  plan_ = PlanOf(declaration_, options_.job);
  plan_->set_job_id(options_.job_id);
  plan_->set_lineage(lineage());
  plan_->set_epoch(epoch);
  plan_->set_start_step(restore_step_);
  plan_->set_restore_from(restore_from_);
  plan_->set_checkpoint_directory(checkpoint_directory_);
  for (const Place& server : membership_.servers()) {
    plan_->add_servers(server.holder.address());
  }
  if (phase_ == v1::JOB_PHASE_WAITING) phase_ = v1::JOB_PHASE_RUNNING;
}

std::string JobState::Missing() const {
  return membership_.Missing(declaration_.parameters_size() > 0);
}

absl::Status JobState::Renew(const v1::HeartbeatRequest& request,
                             int64_t now_micros) {
  return membership_
      .Renew(request.role(), request.index(), request.incarnation(), now_micros)
      .status();
}

absl::Status JobState::CheckWorker(uint32_t rank, uint64_t incarnation,
                                   uint64_t plan_epoch) const {
  const std::vector<Place>& workers = membership_.workers();
  if (rank >= workers.size() || !workers[rank].alive ||
      workers[rank].incarnation != incarnation) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", rank, " is not held by incarnation ", incarnation));
  }
  if (!plan_ || plan_->epoch() != plan_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan in force is of epoch ",
                     plan_ ? plan_->epoch() : 0, ", got ", plan_epoch));
  }
  return absl::OkStatus();
}

v1::HeartbeatResponse JobState::Apply(const v1::HeartbeatRequest& request,
                                      uint32_t steps_taken, int64_t last_step) {
  Place& place = request.role() == v1::ROLE_SERVER
                     ? membership_.servers()[request.index()]
                     : membership_.workers()[request.index()];
  // A late copy of an earlier heartbeat must not reduce the begun step.
  const int64_t begun_step =
      place.latest.plan_epoch() == request.plan_epoch()
          ? std::max(place.latest.begun_step(), request.begun_step())
          : request.begun_step();
  place.Keep(request, membership_.workers().size());
  place.latest.set_begun_step(begun_step);
  if (!request.error().empty()) {
    Fail(absl::StrCat(place.Name(), " failed: ", place.latest.error()));
  }
  // Reports about an earlier plan no longer count.
  const bool current =
      plan_ && std::max<uint64_t>(1, request.plan_epoch()) == plan_->epoch();
  if (!current) {
    furthest_step_ = std::max(furthest_step_, begun_step);
    place.latest.clear_begun_step();
  }
  if (request.role() == v1::ROLE_WORKER && current) {
    if (request.finished() && !place.finished &&
        static_cast<int>(steps_taken) == request.steps_size()) {
      place.finished = true;
      CheckFinish(place, last_step);
    }
    if (request.paused() && phase_ == v1::JOB_PHASE_STOPPING) {
      place.stop_bound = begun_step;
    }
    SettleStopStep();
    if (request.broken_group_epoch() == plan_->epoch()) {
      BreakGroup(place, place.latest.broken_group());
    }
  }
  v1::HeartbeatResponse response = OrdersFor(request);
  response.set_steps_taken(steps_taken);
  return response;
}

v1::HeartbeatResponse JobState::Orders() const {
  v1::HeartbeatResponse orders;
  orders.set_phase(phase_);
  orders.set_message(message_);
  if (stop_step_) orders.set_stop_step(*stop_step_);
  if (plan_) orders.set_plan_epoch(plan_->epoch());
  return orders;
}

v1::HeartbeatResponse JobState::OrdersFor(const v1::HeartbeatRequest& request) {
  v1::HeartbeatResponse response = Orders();
  if (request.role() == v1::ROLE_WORKER) {
    for (uint32_t rank : AdoptedBy(request.index())) {
      response.add_adopt_ranks(rank);
    }
  }
  if (over()) {
    std::vector<Place>& places = request.role() == v1::ROLE_SERVER
                                     ? membership_.servers()
                                     : membership_.workers();
    if (request.index() < places.size() &&
        places[request.index()].incarnation == request.incarnation()) {
      places[request.index()].knows_end = true;
      places[request.index()].KeepFigures(request);
    }
  }
  return response;
}

void JobState::CheckFinish(const Place& worker, int64_t last_step) {
  if (last_step == final_step()) return;
  Fail(absl::StrCat(worker.Name(), " finished after step ", last_step, " of ",
                    final_step()));
}

// A worker that has finished or paused begins no step after the one it
// reported, so every worker can still reach the highest of these steps. After a
// rollback workers may report earlier steps than furthest_step_; those steps
// are computed again first.
void JobState::SettleStopStep() {
  if (phase_ != v1::JOB_PHASE_STOPPING || stop_step_) return;
  int64_t highest = furthest_step_;
  for (const Place& worker : membership_.workers()) {
    if (worker.stop_bound < 0 && !worker.finished) return;
    highest =
        std::max(highest, worker.finished ? final_step() : worker.stop_bound);
  }
  stop_step_ = std::min(highest, total_steps());
}

int64_t JobState::LastStepOf(const Place& place) const {
  return place.role == v1::ROLE_WORKER ? place.latest.begun_step()
                                       : HighestBegun();
}

int64_t JobState::HighestBegun() const {
  int64_t highest = 0;
  for (const Place& worker : membership_.workers()) {
    highest = std::max(highest, worker.latest.begun_step());
  }
  return highest;
}

void JobState::RequestStop() {
  if (stop_requested_ || over()) return;
  stop_requested_ = true;
  if (!plan_) {
    Fail(absl::StrCat("stopped before the first step, while waiting for ",
                      Missing()));
    return;
  }
  phase_ = v1::JOB_PHASE_STOPPING;
  SettleStopStep();
}

void JobState::Fail(absl::string_view why) {
  if (over()) return;
  phase_ = v1::JOB_PHASE_FAILED;
  message_ = std::string(why);
}

void JobState::MarkDone() {
  if (!over()) phase_ = v1::JOB_PHASE_DONE;
}

bool JobState::AllWorkersFinished() const {
  return std::all_of(membership_.workers().begin(), membership_.workers().end(),
                     [](const Place& worker) { return worker.finished; });
}

bool JobState::EveryoneKnowsEnd() const {
  const auto knows = [](const Place& place) {
    return !place.alive || place.knows_end;
  };
  return std::all_of(membership_.servers().begin(), membership_.servers().end(),
                     knows) &&
         std::all_of(membership_.workers().begin(), membership_.workers().end(),
                     knows);
}

}  // namespace tributary
