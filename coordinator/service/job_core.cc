// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/failpoint.h"
#include "common/base/limits.h"
#include "common/job/job_options.h"
#include "common/plan/plan_codec.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/role_name.h"
#include "coordinator/core/state_file.h"
#include "coordinator/service/checkpoint_holders.h"
#include "coordinator/service/job_status.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// Limit of notices that wait to be shown; the log has all of them.
constexpr size_t kMaxNotices = 1000;

}  // namespace

JobCore::JobCore(Options options)
    : clock_(options.clock),
      started_micros_(options.predecessor.state != nullptr
                          ? options.predecessor.state->started_micros()
                          : options.started_micros),
      state_(options.predecessor.state != nullptr
                 ? JobState(options.state, *options.predecessor.state, now())
                 : JobState(options.state, now())),
      reports_(options.state.job, options.state.start.step),
      trace_(state_.options().job),
      checkpoints_(&state_),
      decisions_(&state_),
      rendezvous_(options.state.job.cluster().workers()),
      saver_(std::move(options.save), clock_,
             options.predecessor.state != nullptr
                 ? options.predecessor.state->term() + 1
                 : 1),
      evaluation_saver_(std::move(options.save_evaluations), clock_) {
  published_.set_phase(state_.phase());
  if (options.predecessor.state != nullptr || !options.state.hold_start)
    saver_.Allow();
  if (options.predecessor.state == nullptr) {
    // Evaluations on another set say nothing about this one.
    const auto& manifest = state_.options().start.manifest;
    if (manifest &&
        EvaluatedSet(manifest->job()) == EvaluatedSet(state_.options().job)) {
      for (const EvaluationRecord& evaluation : EvaluationsOf(
               manifest->evaluations(), EvaluatedSet(state_.options().job))) {
        reports_.evaluations().Restore(evaluation);
      }
      decisions_.Restore({}, manifest->evaluations());
    }
    return;
  }
  Restore(options.predecessor);
  Commit();  // publishes the term
}

void JobCore::Restore(const Predecessor& predecessor) {
  const v1::CoordinatorState& state = *predecessor.state;
  reports_.Restore(state, predecessor.recorded, predecessor.evaluations, now());
  const std::string set = EvaluatedSet(state_.options().job);
  std::vector<EvaluationRecord> evaluated;
  for (const EvaluationRecord& evaluation : predecessor.evaluations) {
    evaluation_saver_.Restore(evaluation);
    if (evaluation.set == set) evaluated.push_back(evaluation);
  }
  decisions_.Restore(evaluated, state.evaluations());
  events_.Continue(predecessor.events, predecessor.recorded.step);
  state_.KnowBegun(predecessor.recorded.step);
  held_micros_ = now();
  logged_phase_ = state_.phase();
  if (state_.plan() != nullptr) taken_over_epoch_ = state_.plan()->epoch();
}

void JobCore::Commit() {
  if (saver_.deposed()) return;
  v1::CoordinatorState small = state_.SaveSmall();
  small.set_started_micros(started_micros_);
  if (decisions_.decides()) {
    decisions_.Save(kMaxStep, small.mutable_evaluations());
  }
  std::vector<std::string> notices;
  evaluation_saver_.Update(&notices);
  saver_.Update(
      std::move(small), state_.large_revision(),
      [this](v1::CoordinatorState* state) { state_.SaveLarge(state); },
      &notices);
  Note(std::move(notices));
  if (!Held().ok()) return;
  published_ = state_.Orders();
  published_.set_term(saver_.term());
  BeginPlan();
  Note(state_.TakeNotices());
  Note(checkpoints_.TakeNotices());
  Note(reports_.TakeNotices());
  events_.AddCheckpoint(checkpoints_.ledger().newest_step());
  if (state_.phase() == logged_phase_) return;
  if (state_.phase() == v1::JOB_PHASE_RUNNING) reports_.Begin(now());
  logged_phase_ = state_.phase();
  const std::string news =
      absl::StrCat("the job is ", PhaseWord(logged_phase_),
                   state_.message().empty() ? "" : ": ", state_.message());
  spdlog::info("{}", news);
  events_.Add(news);
}

void JobCore::BeginPlan() {
  if (state_.plan() == nullptr || state_.plan()->epoch() == begun_epoch_) {
    return;
  }
  begun_epoch_ = state_.plan()->epoch();
  checkpoints_.BeginPlan();
  rendezvous_.Begin(begun_epoch_);
  put_weights_.Begin(FromProto(state_.plan()->parameters()));
}

void JobCore::Note(std::string notice) {
  spdlog::warn("{}", notice);
  events_.Add(notice);
  if (notices_.size() < kMaxNotices) notices_.push_back(std::move(notice));
}

void JobCore::Note(std::vector<std::string> notices) {
  for (std::string& notice : notices) Note(std::move(notice));
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

absl::Status JobCore::Hear(const v1::HeartbeatRequest& request) {
  // Checked first: in another job, its place and incarnation may be valid here.
  if (request.job_id() != state_.options().job_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("a heartbeat of job ", request.job_id(),
                     "; this is the coordinator of job ",
                     state_.options().job_id, ": its job has ended"));
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
  const bool knows =
      request.term() == saver_.term() || saver_.term() == 1 || state_.over();
  return knows && Held().ok();
}

absl::StatusOr<v1::HeartbeatResponse> JobCore::Beat(
    const v1::HeartbeatRequest& request) {
  if (state_.over()) {
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
      writes ? checkpoints_.Take(request, saver_.saved()) : 0;
  v1::HeartbeatResponse response = state_.Apply(request, taken, last_step);
  response.set_wants_weights(!WeightsWanted().empty());
  FollowAskedCheckpoint();
  response.set_hold(state_.asked().hold());
  // A server takes its snapshots in the order of steps.
  response.set_cut_step(
      ReadyToSave() && checkpoints_.WritesAtEnd()
          ? state_.final_step()
          : std::max(decisions_.cut_step(),
                     StandsForCheckpoint() ? state_.asked().step() : 0));
  response.set_checkpoints_taken(decided);
  return response;
}

// The steps before a failure show its cause. An error no longer changes
// anything.
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
    state_.BreakGroup(state_.membership().workers()[request.rank()],
                      "the coordinator that brought them together has ended");
  }
  return rendezvous_.Put(request);
}

absl::Status JobCore::Put(const v1::PutWeightsRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (StrategyOf(state_.options().job).uses_servers()) {
    return absl::FailedPreconditionError(
        "weights are put by the ranks of a job without servers");
  }
  const v1::Plan& plan = *state_.plan();
  if (request.parameter() < static_cast<uint32_t>(plan.parameters_size())) {
    const uint32_t first = FirstHolderOf(plan, request.parameter());
    if (request.rank() != first) {
      return absl::FailedPreconditionError(absl::StrCat(
          "parameter ",
          plan.parameters(static_cast<int>(request.parameter())).name(),
          " is put by rank ", first, ", got rank ", request.rank()));
    }
  }
  const absl::Status status = put_weights_.Put(request);
  TRIBUTARY_FAILPOINT("coordinator-weights-piece");
  return status;
}

absl::Status JobCore::LeavesCheckpoint() const {
  if (state_.plan() == nullptr) {
    return absl::FailedPreconditionError(
        "the job has not begun a step, so it has nothing to save");
  }
  if (state_.options().job.checkpoint().at_end() &&
      !state_.plan()->checkpoint_directory().empty()) {
    return absl::OkStatus();
  }
  const int64_t newest =
      std::max(checkpoints_.ledger().newest_step(), state_.restore_step());
  return absl::FailedPreconditionError(absl::StrCat(
      "the job writes no checkpoint when it stops: checkpoint.at_end is false",
      newest > 0 ? absl::StrCat("; its newest checkpoint is of step ", newest)
                 : ""));
}

absl::StatusOr<v1::StopJobResponse> JobCore::Stop(
    const v1::StopJobRequest& request) {
  if (state_.over()) return Over();
  const absl::Status leaves = LeavesCheckpoint();
  if (request.checkpoint()) TRIBUTARY_RETURN_IF_ERROR(leaves);
  if (!state_.stop().requested()) {
    Note(absl::StrCat("stopping at the next common step, as asked: ",
                      request.reason().empty()
                          ? "no reason was given"
                          : ShortSentence(request.reason())));
  }
  state_.RequestStop();
  v1::StopJobResponse response;
  response.set_message(
      state_.over()
          ? state_.message()
          : absl::StrCat("the job ends after the next step that every worker "
                         "reaches, and ",
                         leaves.ok() ? "leaves a checkpoint of it"
                                     : "leaves no checkpoint of it"));
  return response;
}

void JobCore::AllowStart(const std::string& checkpoint_directory) {
  saver_.Allow();
  state_.AllowStart(checkpoint_directory);
}

void JobCore::Tick() {
  if (saver_.deposed()) return;
  if (saver_.HeldFor(state_.options().loss_timeout_micros)) {
    state_.Fail(Held().message(), CauseOf(Held()));
    saver_.GiveUp();
  }
  state_.Tick(now());
  reports_.GiveUpSilent(state_.membership(), state_.final_step());
  WantWeights();
}

bool JobCore::InForce(uint64_t plan_epoch) const {
  return !state_.over() && state_.plan() != nullptr &&
         !state_.wants_new_plan() && state_.plan()->epoch() == plan_epoch;
}

bool JobCore::ReadyToSave() const {
  return state_.plan() != nullptr && InForce(state_.plan()->epoch()) &&
         state_.membership().AllWorkersFinished() &&
         reports_.progress().merged_step() >= state_.final_step();
}

void JobCore::Saved(uint64_t plan_epoch, const absl::Status& status) {
  if (status.ok()) {
    state_.MarkDone();
  } else if (InForce(plan_epoch)) {
    state_.Fail(absl::StrCat("the final weights could not be saved: ",
                             status.message()),
                CauseOf(status));
  }
}

bool JobCore::HasUpdate() const {
  const Progress& progress = reports_.progress();
  return progress.HasRecords() || (!notices_.empty() && !HoldsNotices()) ||
         HasModel() || reports_.HasEvaluations() || phase() != shown_phase_;
}

void JobCore::WatchSteps(const std::vector<StepRecord>& steps) {
  for (const StepRecord& record : steps) {
    if (record.samples > 0) divergence_.Add(record.step, record.loss);
    if (!record.skipped) continue;
    const std::string skipped = skipped_steps_.Add(record.step);
    if (!skipped.empty()) Note(skipped);
  }
  const std::string diverges = divergence_.TakeNotice();
  if (diverges.empty()) return;
  Note(diverges);
  if (state_.options().job.training().divergence() == v1::DIVERGENCE_FAIL) {
    state_.Fail(diverges, v1::CAUSE_DIVERGENCE);
  }
}

JobUpdate JobCore::TakeUpdate() {
  JobUpdate update;
  update.steps = reports_.progress().Take();
  WatchSteps(update.steps);
  update.evaluations = reports_.TakeEvaluations();
  if (!HoldsNotices()) update.notices = std::exchange(notices_, {});
  update.events = events_.TakeNew();
  update.trace = trace_.TakeBatches();
  update.phase = shown_phase_ = phase();
  update.message = Message();
  update.total_steps = KnownSteps(state_.total_steps());
  update.course = state_.course();
  if (HasModel()) {
    update.model =
        std::make_shared<const v1::DeclareModelRequest>(state_.declaration());
    model_shown_ = true;
  }
  if (saver_.deposed()) update.deposed = std::string(Held().message());
  return update;
}

}  // namespace tributary
