// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/job/job_options.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/role_name.h"
#include "coordinator/job/job_status.h"
#include "spdlog/spdlog.h"

namespace tributary {
JobCore::JobCore(Options options)
    : clock_(options.clock),
      started_micros_(options.predecessor.state != nullptr
                          ? options.predecessor.state->started_micros()
                          : options.started_micros),
      state_(options.predecessor.state != nullptr
                 ? JobState(options.state, *options.predecessor.state, now())
                 : JobState(options.state, now())),
      reports_(options.state.job, options.state.start),
      trace_(state_.options().job),
      checkpoints_(&state_),
      evaluations_(&state_, &reports_, std::move(options.save_evaluations),
                   clock_),
      rendezvous_(options.state.job.cluster().workers()),
      requests_(&state_, &checkpoints_, clock_),
      ending_(&state_, &reports_),
      news_(&state_, &reports_),
      saver_(std::move(options.save), clock_,
             options.predecessor.state != nullptr
                 ? options.predecessor.state->term() + 1
                 : 1) {
  published_.set_phase(state_.life().phase());
  if (options.predecessor.state != nullptr || !options.state.hold_start)
    saver_.Allow();
  if (options.predecessor.state == nullptr) {
    evaluations_.Begin();
    return;
  }
  Restore(options.predecessor);
  Commit();  // publishes the term
}

void JobCore::Restore(const Predecessor& predecessor) {
  const v1::CoordinatorState& state = *predecessor.state;
  reports_.Restore(state, predecessor.recorded, predecessor.evaluations, now());
  evaluations_.Restore(predecessor.evaluations, state.evaluations());
  (void)evaluations_.Declared();  // the predecessor has told it
  news_.Restore(predecessor.events, predecessor.recorded.step,
                state.first_loss());
  state_.steps().KnowBegun(predecessor.recorded.step);
  requests_.Restore();
  if (state_.plan() != nullptr) taken_over_epoch_ = state_.plan()->epoch();
}

void JobCore::Commit() {
  if (saver_.deposed()) return;
  v1::CoordinatorState small = state_.SaveSmall();
  small.set_started_micros(started_micros_);
  if (news_.first_loss().step() > 0) {
    *small.mutable_first_loss() = news_.first_loss();
  }
  if (evaluations_.decisions().decides()) {
    evaluations_.decisions().Save(kMaxStep, small.mutable_evaluations());
  }
  std::vector<std::string> notices;
  evaluations_.SaveNew(&notices);
  saver_.Update(
      std::move(small), state_.large_revision(),
      [this](v1::CoordinatorState* state) { state_.SaveLarge(state); },
      &notices);
  news_.Note(std::move(notices));
  if (!Held().ok()) return;
  published_ = state_.Orders();
  published_.set_term(saver_.term());
  BeginPlan();
  news_.Note(requests_.TakeNotices());
  news_.Note(state_.TakeNotices());
  news_.Note(checkpoints_.TakeNotices());
  news_.Note(reports_.TakeNotices());
  news_.AddCheckpoint(checkpoints_.ledger().newest_step());
  if (news_.NotePhase() && state_.life().phase() == v1::JOB_PHASE_RUNNING) {
    reports_.Begin(now());
  }
}

void JobCore::BeginPlan() {
  if (state_.plan() == nullptr || state_.plan()->epoch() == begun_epoch_) {
    return;
  }
  if (std::exchange(begun_epoch_, state_.plan()->epoch()) > 0) {
    evaluations_.GoBack();
  }
  checkpoints_.BeginPlan();
  rendezvous_.Begin(begun_epoch_);
  ending_.BeginPlan();
}

absl::StatusOr<v1::RegisterResponse> JobCore::Register(
    const v1::RegisterRequest& request) {
  TRIBUTARY_ASSIGN_OR_RETURN(v1::RegisterResponse place,
                             state_.Register(request, now()));
  place.set_term(saver_.term());
  if (request.role() == v1::ROLE_OBSERVER) return place;
  if (!request.arithmetic().empty()) {
    // The process is registered already and now reports its arithmetic.
    spdlog::log(place.recomputes() ? spdlog::level::info : spdlog::level::debug,
                "worker {} computes with {}{}", place.index(),
                request.arithmetic(),
                place.recomputes() ? ", unlike a process before it" : "");
  } else {
    spdlog::info("{} {} is {} (pid {}){}{}, incarnation {}",
                 RoleName(request.role()), place.index(), request.host(),
                 request.pid(), request.address().empty() ? "" : " at ",
                 request.address(), place.incarnation());
  }
  return place;
}

absl::Status JobCore::DeclareModel(const v1::DeclareModelRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.DeclareModel(request, now()));
  if (const std::string notice = evaluations_.Declared(); !notice.empty()) {
    news_.Note(notice);
  }
  return absl::OkStatus();
}

absl::Status JobCore::Hear(const v1::HeartbeatRequest& request) {
  // The job is checked first: in another job, the sender's place and
  // incarnation may be valid here.
  if (request.job_id() != state_.options().job_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this address now serves job ", state_.options().job_id, ", not job ",
        request.job_id(), ", in which the sender has a place"));
  }
  if (request.term() > saver_.term() && !saver_.deposed()) {
    saver_.Depose(request.term());
    spdlog::error("{}", std::string(Held().message()));
  }
  return absl::OkStatus();
}

bool JobCore::MayTake(const v1::HeartbeatRequest& request) const {
  if (saver_.deposed()) return false;
  if (!request.error().empty()) return true;  // the member's last message
  // A member that does not know this term yet is only told the term. Its next
  // heartbeat also repeats the reports that the previous coordinator did not
  // record.
  const bool knows = request.term() == saver_.term() || saver_.term() == 1 ||
                     state_.life().over();
  return knows && Held().ok();
}

absl::StatusOr<v1::HeartbeatResponse> JobCore::Beat(
    const v1::HeartbeatRequest& request) {
  if (state_.life().over()) {
    TakeLate(request);
    return state_.OrdersFor(request);
  }
  TRIBUTARY_RETURN_IF_ERROR(state_.Renew(request.role(), request.index(),
                                         request.incarnation(), now()));
  uint32_t taken = 0;
  int64_t last_step = 0;
  if (request.role() == v1::ROLE_WORKER) {
    const absl::StatusOr<uint32_t> added = reports_.Take(request, now());
    // A member's last message counts, even if its reports are wrong.
    if (!added.ok() && request.error().empty()) return added.status();
    taken = added.value_or(0);
    last_step = reports_.progress().last_step(request.index());
  }
  const Strategy strategy = StrategyOf(state_.options().job);
  const bool writes = request.role() == v1::ROLE_SERVER
                          ? strategy.uses_servers()
                          : strategy.ranks_write_checkpoints();
  const uint32_t decided =
      writes ? checkpoints_.Take(request, saver_.saved(),
                                 evaluations_.decisions().kept_step())
             : 0;
  v1::HeartbeatResponse response = state_.Apply(request, taken, last_step);
  response.set_wants_weights(!ending_.Wanted().empty());
  requests_.Follow();
  response.set_hold(state_.steps().asked().hold());
  // A server takes its snapshots in the order of steps.
  const int64_t best = evaluations_.decisions().cut_step();
  response.set_cut_step(ending_.Ready() && checkpoints_.WritesAtEnd()
                            ? state_.steps().final_step()
                            : std::max(best, requests_.Stands()
                                                 ? state_.steps().asked().step()
                                                 : 0));
  response.set_cut_is_best(best > 0 && response.cut_step() == best);
  response.set_checkpoints_taken(decided);
  return response;
}

// The steps before a failure show its cause. An error in the reports no longer
// matters.
void JobCore::TakeLate(const v1::HeartbeatRequest& request) {
  if (phase() != v1::JOB_PHASE_FAILED || request.role() != v1::ROLE_WORKER ||
      request.steps().empty()) {
    return;
  }
  if (state_
          .CheckWorker(request.index(), request.incarnation(),
                       request.plan_epoch())
          .ok()) {
    (void)reports_.Take(request, now());
  }
}

absl::StatusOr<v1::HeartbeatResponse> JobCore::HeldBeat(
    const v1::HeartbeatRequest& request) {
  if (saver_.deposed()) return Held();
  const absl::Status renewed = state_.Renew(request.role(), request.index(),
                                            request.incarnation(), now());
  if (!renewed.ok()) return Held().ok() ? renewed : Held();
  v1::HeartbeatResponse answer = published_;
  answer.set_waits_for(Message());
  return answer;
}

absl::Status JobCore::Exchange(const v1::ExchangeRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (request.plan_epoch() == taken_over_epoch_) {
    // The payloads of the other ranks were lost with the previous coordinator,
    // and a rank that has received all payloads does not send its own again.
    state_.losses().BreakGroup(
        state_.membership().workers()[request.rank()],
        "the coordinator that brought them together has ended");
  }
  return rendezvous_.Put(request);
}

void JobCore::AllowStart(const std::string& checkpoint_directory) {
  saver_.Allow();
  state_.AllowStart(checkpoint_directory);
}

void JobCore::Tick() {
  if (saver_.deposed()) return;
  if (saver_.HeldFor(state_.options().loss_timeout_micros)) {
    state_.life().Fail(Held().message(), CauseOf(Held()));
    saver_.GiveUp();
  }
  state_.Tick(now());
  reports_.GiveUpSilent(state_.membership(), state_.steps().final_step());
  const std::string wanted = ending_.WantAgain(now());
  if (!wanted.empty()) news_.Note(wanted);
}

void JobCore::SetWaits(const v1::Wait& what) {
  if (!waits_ && !what.text().empty()) {
    news_.Note(what.text());
    waits_.since_micros = now();
  }
  waits_.wait = what;
}

JobWait JobCore::Waiting() const {
  if (const absl::Status held = Held(); !held.ok()) {
    v1::Wait wait = WaitFor(std::string(held.message()));
    wait.set_cause(CauseOf(held));
    return {std::move(wait), saver_.held_micros()};
  }
  if (state_.life().over()) return {};
  const int64_t since =
      state_.WaitsSinceMicros().value_or(reports_.progress_micros());
  if (state_.life().phase() == v1::JOB_PHASE_WAITING) {
    v1::Wait wait = WaitFor(absl::StrCat("waiting for ", state_.Missing()));
    wait.set_cause(v1::CAUSE_PLACE);
    return {std::move(wait), since};
  }
  if (const std::vector<uint32_t> ranks = ending_.Wanted(); !ranks.empty()) {
    const absl::Status wanted =
        ending_.Weights(state_.steps().final_step()).status();
    return {WaitForRanks(std::string(wanted.message()), ranks,
                         state_.steps().final_step()),
            since};
  }
  if (v1::Wait members = state_.WaitsFor(now()); !members.text().empty()) {
    return {std::move(members), since};
  }
  if (JobWait hold = requests_.Waiting(); hold) return hold;
  return waits_;
}

std::string JobCore::Message() const {
  const JobWait waiting = Waiting();
  return !waiting && state_.life().over() ? state_.life().message()
                                          : waiting.wait.text();
}

void JobCore::CloseReports() {
  if (saver_.deposed() || phase() != v1::JOB_PHASE_FAILED) return;
  reports_.progress().Close(StepsDone(state_, reports_, checkpoints_));
}

JobUpdate JobCore::TakeUpdate() {
  JobUpdate update = news_.Take(!Held().ok());
  update.trace = trace_.TakeBatches();
  update.phase = phase();
  news_.Show(update.phase);
  update.message = Message();
  if (saver_.deposed()) update.deposed = std::string(Held().message());
  return update;
}

}  // namespace tributary
