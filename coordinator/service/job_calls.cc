// The calls of the service, as JobControl answers them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/mutation.h"
#include "common/host/steady_waits.h"
#include "common/job/job_options.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/wire/header_checksum.h"
#include "coordinator/service/job_control.h"
#include "coordinator/service/member_status.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// Limit of a call's wait, because a waiting call holds a thread of the server.
constexpr uint32_t kLongestWaitMs = 10'000;
// Limit per heartbeat; the sender repeats the others.
constexpr int kMaxCheckpointReports = 64;

absl::Status TooManyWait(int calls) {
  return absl::ResourceExhaustedError(
      absl::StrCat(calls, " calls wait at this coordinator, try again later"));
}

}  // namespace

template <typename Change>
auto JobControl::Answer(const Change& change) -> decltype(change()) {
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked());
  decltype(change()) result = change();
  PublishLocked();
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked());
  return result;
}

absl::StatusOr<v1::RegisterResponse> JobControl::Register(
    const v1::RegisterRequest& request) {
  return Answer([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    absl::StatusOr<v1::RegisterResponse> place =
        state_.Register(request, clock_->NowMicros());
    if (!place.ok()) return place;
    place->set_term(term_);
    if (!request.arithmetic().empty()) {
      // The process is registered already and now reports its arithmetic.
      spdlog::log(
          place->recomputes() ? spdlog::level::info : spdlog::level::debug,
          "worker {} computes with {}{}", place->index(), request.arithmetic(),
          place->recomputes() ? ", unlike a process before it" : "");
    } else {
      spdlog::info("{} {} is {} (pid {}){}{}, incarnation {}",
                   request.role() == v1::ROLE_SERVER ? "server" : "worker",
                   place->index(), request.host(), request.pid(),
                   request.address().empty() ? "" : " at ", request.address(),
                   place->incarnation());
    }
    return place;
  });
}

absl::Status JobControl::DeclareModel(const v1::DeclareModelRequest& request) {
  return Answer([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return state_.DeclareModel(request, clock_->NowMicros());
  });
}

// Any client can make such calls: they must not take all threads of the server.
bool JobControl::MayHoldLocked() const {
  const v1::ClusterSpec& cluster = state_.options().job.cluster();
  return held_calls_ < cluster.servers() + cluster.workers();
}

absl::StatusOr<v1::Plan> JobControl::GetPlan(
    const v1::GetPlanRequest& request) {
  absl::MutexLock lock(&mu_);
  const auto there = [this, &request]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return state_.plan() != nullptr && !state_.wants_new_plan() &&
           state_.plan()->epoch() >= request.min_epoch();
  };
  const auto decided = [this, &there]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (HeldLocked().ok() && (state_.over() || there()));
  };
  if (!decided() && !MayHoldLocked()) return TooManyWait(held_calls_);
  ++held_calls_;
  AwaitFor(&mu_, absl::Condition(&decided),
           absl::Milliseconds(std::min(request.wait_ms(), kLongestWaitMs)));
  --held_calls_;
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked());
  if (state_.phase() == v1::JOB_PHASE_FAILED) {
    return absl::AbortedError(state_.message());
  }
  if (state_.over()) return absl::FailedPreconditionError("the job is done");
  if (there()) return *state_.plan();
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  if (state_.plan() != nullptr && !state_.wants_new_plan()) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job has plan epoch ", state_.plan()->epoch(),
                     ", wanted ", request.min_epoch(), " or later"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the job still waits for ", state_.Missing()));
}

absl::StatusOr<v1::HeartbeatResponse> JobControl::Heartbeat(
    const v1::HeartbeatRequest& request) {
  absl::MutexLock lock(&mu_);
  // Checked first: in another job, its place and incarnation may be valid here.
  if (request.job_id() != state_.options().job_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("a heartbeat of job ", request.job_id(),
                     "; this is the coordinator of job ",
                     state_.options().job_id, ": its job has ended"));
  }
  if (request.term() > term_ && deposed_by_ == 0) {
    deposed_by_ = request.term();
    closed_ = true;
    spdlog::error("{}", std::string(HeldLocked().message()));
  }
  absl::StatusOr<v1::HeartbeatResponse> answer =
      MayTakeLocked(request) ? BeatLocked(request) : HeldBeatLocked(request);
  if (answer.ok()) answer->set_term(term_);
  return answer;
}

bool JobControl::MayTakeLocked(const v1::HeartbeatRequest& request) const {
  if (deposed_by_ > 0) return false;
  if (!request.error().empty()) return true;  // the member's last message
  // A member that does not know this term yet is only told the term. Its next
  // heartbeat also repeats the reports that the previous coordinator did not
  // record.
  const bool knows = request.term() == term_ || term_ == 1 || state_.over();
  return knows && HeldLocked().ok();
}

absl::StatusOr<v1::HeartbeatResponse> JobControl::HeldBeatLocked(
    const v1::HeartbeatRequest& request) {
  if (deposed_by_ > 0) return HeldLocked();
  const absl::Status renewed = state_.Renew(request, clock_->NowMicros());
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked().ok() || renewed.ok() ? renewed
                                                              : HeldLocked());
  v1::HeartbeatResponse answer = published_;
  answer.set_waits_for(MessageLocked());
  return answer;
}

absl::StatusOr<v1::HeartbeatResponse> JobControl::BeatLocked(
    const v1::HeartbeatRequest& request) {
  if (state_.over()) return state_.OrdersFor(request);
  TRIBUTARY_RETURN_IF_ERROR(state_.Renew(request, clock_->NowMicros()));
  uint32_t taken = 0;
  int64_t last_step = 0;
  if (request.role() == v1::ROLE_WORKER) {
    if (request.plan_epoch() > 0) {
      TRIBUTARY_RETURN_IF_ERROR(
          progress_.StartAt(request.index(), request.start_step()));
    }
    TRIBUTARY_RETURN_IF_ERROR(FindReportsLocked(request));
    TRIBUTARY_ASSIGN_OR_RETURN(taken,
                               progress_.Add(request.index(), request.steps()));
    NoteProgressLocked();
    last_step = progress_.last_step(request.index());
  }
  const uint32_t decided =
      UsesServers(state_.options().job) == (request.role() == v1::ROLE_SERVER)
          ? TakeCheckpointsLocked(request)
          : 0;
  v1::HeartbeatResponse response = state_.Apply(request, taken, last_step);
  response.set_wants_weights(!WeightsWantedLocked().empty());
  response.set_checkpoints_taken(decided);
  PublishLocked();
  if (!HeldLocked().ok()) return HeldBeatLocked(request);
  if (!state_.over()) response.set_waits_for(MessageLocked());
  return response;
}

absl::Status JobControl::FindReportsLocked(
    const v1::HeartbeatRequest& request) {
  if (request.steps().empty() || unheard_.count(request.index()) == 0) {
    return absl::OkStatus();
  }
  if (request.steps(0).step() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.index(), " reports step ",
                     request.steps(0).step(), "; steps count from 1"));
  }
  unheard_.erase(request.index());
  return progress_.StartAt(request.index(), request.steps(0).step() - 1);
}

uint32_t JobControl::TakeCheckpointsLocked(
    const v1::HeartbeatRequest& request) {
  const int count = std::min(request.checkpoints_size(), kMaxCheckpointReports);
  // A file that was reported under an earlier plan belongs to another
  // computation of its step.
  const auto counts =
      [this](const v1::CheckpointReport& report)
          ABSL_SHARED_LOCKS_REQUIRED(mu_) {
            return state_.plan() != nullptr &&
                   (report.plan_epoch() == state_.plan()->epoch() ||
                    TRIBUTARY_MUTATED("old-report-counts"));
          };
  const auto cannot_read = [this](const v1::CheckpointReport& report)
                               ABSL_SHARED_LOCKS_REQUIRED(mu_) {
                                 return report.step() ==
                                            state_.plan()->start_step() &&
                                        !state_.plan()->restore_from().empty();
                               };
  // The job already continues from another checkpoint.
  const auto is_noted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return state_.restore_step() != state_.plan()->start_step();
  };
  for (int i = 0; i < count; ++i) {
    const v1::CheckpointReport& report = request.checkpoints(i);
    if (!counts(report)) continue;
    // A plan writes no file for its start step: such a report means that the
    // checkpoint of this step cannot be read.
    if (cannot_read(report)) {
      if (is_noted()) continue;
      NoteUnreadableLocked(*state_.plan(), request.index(), report.error());
      continue;
    }
    ledger_.Add(request.index(), report);
    TRIBUTARY_FAILPOINT("coordinator-checkpoint-report");
  }
  uint32_t decided = 0;
  for (int i = 0; saving_.error.ok() && i < count; ++i, ++decided) {
    const v1::CheckpointReport& report = request.checkpoints(i);
    if (!counts(report)) continue;
    if (ledger_.Undecided(report.step())) break;
    if (cannot_read(report) && !is_noted()) break;
  }
  return decided;
}

void JobControl::NoteUnreadableLocked(const v1::Plan& plan, uint32_t index,
                                      const std::string& error) {
  unreadable_ = {
      .plan_epoch = plan.epoch(),
      .step = plan.start_step(),
      .folder = plan.restore_from(),
      .directory = plan.checkpoint_directory(),
      .why = absl::StrCat(
          UsesServers(state_.options().job) ? "server " : "rank ", index, ": ",
          error.substr(0, CheckpointLedger::kMaxTextBytes))};
}

absl::Status JobControl::ReportEvaluation(
    const v1::ReportEvaluationRequest& request) {
  return Answer([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    v1::HeartbeatRequest place;
    place.set_role(v1::ROLE_WORKER);
    place.set_index(request.rank());
    place.set_incarnation(request.incarnation());
    absl::Status status = state_.Renew(place, clock_->NowMicros());
    if (status.ok()) status = evaluations_.Add(request);
    return status;
  });
}

absl::StatusOr<v1::ExchangeResponse> JobControl::Exchange(
    const v1::ExchangeRequest& request) {
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked());
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (request.plan_epoch() == taken_over_epoch_) {
    // The payloads of the other ranks were lost with the previous coordinator,
    // and a rank that has received all payloads does not send its own again.
    state_.BreakGroup(state_.membership().workers()[request.rank()],
                      "the coordinator that brought them together has ended");
    PublishLocked();
  }
  TRIBUTARY_RETURN_IF_ERROR(rendezvous_.Put(request));
  const auto is_over = [this, &request]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return state_.over() || state_.wants_new_plan() ||
           state_.plan()->epoch() != request.plan_epoch();
  };
  const auto decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closed_ || (HeldLocked().ok() && is_over()) ||
           rendezvous_.Complete(request.group()) != nullptr;
  };
  if (!decided() && !MayHoldLocked()) return TooManyWait(held_calls_);
  ++held_calls_;
  AwaitFor(&mu_, absl::Condition(&decided),
           absl::Milliseconds(std::min(request.wait_ms(), kLongestWaitMs)));
  --held_calls_;
  if (closed_) return absl::UnavailableError("the coordinator is closing");
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked());
  if (is_over()) {
    return absl::AbortedError(
        absl::StrCat("plan epoch ", request.plan_epoch(), " is over"));
  }
  const v1::ExchangeResponse* all = rendezvous_.Complete(request.group());
  if (all != nullptr) return *all;
  return absl::DeadlineExceededError(
      absl::StrCat("waits for ", rendezvous_.Missing(request.group()),
                   " in group ", request.group()));
}

absl::Status JobControl::Put(const v1::PutWeightsRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(CheckHeader(request));
  absl::MutexLock lock(&mu_);
  TRIBUTARY_RETURN_IF_ERROR(HeldLocked());
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (UsesServers(state_.options().job)) {
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

int64_t JobControl::StepOfLocked(const Place& place) const {
  return place.role == v1::ROLE_WORKER ? progress_.last_step(place.index)
                                       : progress_.merged_step();
}

v1::JobStatusResponse JobControl::Snapshot() const {
  absl::MutexLock lock(&mu_);
  v1::JobStatusResponse status;
  status.set_name(state_.options().job.name());
  status.set_phase(PhaseLocked());
  status.set_message(MessageLocked());
  status.set_step(progress_.merged_step());
  status.set_total_steps(state_.total_steps());
  if (state_.steps_per_epoch() > 0) {
    status.set_epoch(static_cast<double>(progress_.merged_step()) /
                     static_cast<double>(state_.steps_per_epoch()));
  }
  status.set_loss(progress_.latest().loss);
  status.set_samples_per_second(progress_.latest().samples_per_second);
  status.set_learning_rate(progress_.latest().learning_rate);
  status.set_samples(progress_.total_samples());
  if (state_.plan() != nullptr && !state_.over()) {
    status.set_step_wait_seconds(
        static_cast<double>(clock_->NowMicros() - progress_micros_) / 1e6);
  }
  for (const auto& [name, value] : evaluations_.latest().metrics) {
    (*status.mutable_test())[name] = value;
  }
  status.set_strategy(StrategyName(state_.options().job));
  status.set_checkpoint_step(
      std::max(ledger_.newest_step(), state_.restore_step()));
  status.set_checkpoint_every_steps(
      state_.options().job.checkpoint().every_steps());
  if (state_.plan() != nullptr) {
    const int64_t since = std::max(ledger_.newest_micros(), begin_micros_);
    status.set_seconds_since_checkpoint(
        1e-6 * static_cast<double>(clock_->NowMicros() - since));
  }
  status.set_checkpoint_failures(ledger_.failures());
  status.set_checkpoint_pause_seconds(ledger_.pause_seconds());
  status.set_checkpoint_write_seconds(ledger_.write_seconds());
  status.set_rollbacks(state_.rollbacks());
  status.set_workers_lost(state_.workers_lost());
  status.set_servers_lost(state_.servers_lost());
  const int64_t now = clock_->NowMicros();
  for (const Place& place : state_.membership().servers()) {
    *status.add_members() = MemberStatusOf(place, StepOfLocked(place), now);
  }
  for (const Place& place : state_.membership().workers()) {
    *status.add_members() = MemberStatusOf(place, StepOfLocked(place), now);
  }
  return status;
}

}  // namespace tributary
