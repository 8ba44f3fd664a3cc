// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/rank/session/give_weights.h"
#include "worker/rank/session/group_synchronizer.h"
#include "worker/rank/session/pass_gate.h"
#include "worker/rank/session/server_synchronizer.h"

namespace tributary {
namespace {

// How long one call waits for a plan; between two calls Cancel is checked.
constexpr absl::Duration kPlanWait = absl::Milliseconds(200);

double SecondsSince(const Clock& clock, int64_t micros) {
  return 1e-6 * static_cast<double>(clock.NowMicros() - micros);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> ProgramSession::Create(
    Options options) {
  std::unique_ptr<ProgramSession> session(
      new ProgramSession(std::move(options)));
  TRIBUTARY_RETURN_IF_ERROR(session->Join());
  return session;
}

absl::Status ProgramSession::Join() {
  TRIBUTARY_ASSIGN_OR_RETURN(exporter_,
                             Exporter::Start({.listen = options_.metrics_listen,
                                              .role = "worker",
                                              .access = options_.pages}));
  Member::Options member;
  member.metrics_address = exporter_->address();
  member.coordinator = options_.coordinator;
  member.role = v1::ROLE_WORKER;
  member.wanted_index = options_.rank;
  member.timeouts.join = options_.join_timeout;
  member.proof = options_.access.Proof();
  member.callbacks.on_end = [this](const absl::Status& status) {
    canceller_.Cancel(status.ok() ? absl::CancelledError("the job is done")
                                  : status);
  };
  member.callbacks.on_new_plan = [this](uint64_t epoch) {
    canceller_.CancelBefore(epoch);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(member_, Member::Join(std::move(member)));
  if (!job().has_program()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job \"", job().name(), "\" at ", options_.coordinator,
        " has a model of its own, which tributary-worker trains; start a job "
        "for this program with `tributary run`"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(course_, member_->Course());
  ServeMetrics();
  std::string why;
  ops_ = CreateOps(DeviceChoice::kCpu, &why);
  member_->display().SetDevice(options_.device);
  TRIBUTARY_ASSIGN_OR_RETURN(recomputes_,
                             member_->DeclareArithmetic(options_.arithmetic));
  DrivenRank* const self = this;
  driver_ = std::make_unique<RankDriver>(
      RankDriver::Options{
          .life = {.group_breaks = StrategyOf(job()).has_groups(),
                   .lease_micros = absl::ToInt64Microseconds(member_->lease())},
          .plan_wait = kPlanWait},
      member_.get(), self);
  return absl::OkStatus();
}

void ProgramSession::ServeMetrics() {
  health_ = exporter_->AddHealthCheck([this] {
    return HealthOf(member_->Contact(), member_->display().waiting_for());
  });
  source_ = exporter_->AddSource([this](MetricsWriter* writer) {
    metrics_.Write(member_->index(), job().cluster().servers(),
                   !member_->display().waiting_for().empty(), writer);
  });
}

// Ends the callbacks of the member and the exporter, which use this object.
ProgramSession::~ProgramSession() {
  EndPlan();
  health_ = Exporter::Handle();
  source_ = Exporter::Handle();
  member_.reset();
}

absl::Status ProgramSession::Start(Declaration declaration) {
  declaration_ = std::move(declaration);
  parameters_ = std::make_unique<ProgramParameters>(
      declaration_.parameters, declaration_.weights, declaration_.reserved,
      StrategyOf(job()).uses_servers() ? ProgramParameters::Gradients::kShared
                                       : ProgramParameters::Gradients::kArray);
  if (rank() == 0) initial_ = parameters_->CopyOfPrograms();
  TRIBUTARY_ASSIGN_OR_RETURN(const Next next, Follow());
  if (next == Next::kStep) return absl::OkStatus();
  return absl::FailedPreconditionError("the job has ended");
}

absl::Status ProgramSession::Declare() {
  return member_->DeclareModel({.parameters = declaration_.parameters,
                                .total_steps = declaration_.total_steps,
                                .steps_per_epoch = declaration_.steps_per_epoch,
                                .course = course_,
                                .data_checksum = declaration_.data_checksum,
                                .settings = options_.settings});
}

absl::Status ProgramSession::SetData(DataStretch data) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      course_, tributary::GoOn(job(), course_, steps_, std::move(data)));
  return declaration_.parameters.empty() ? absl::OkStatus() : Declare();
}

int64_t ProgramSession::EpochOf(int64_t step) const {
  if (!course_.empty()) return course_.EpochOf(step);
  return step == 0 ? 0 : (step - 1) / declaration_.steps_per_epoch + 1;
}

absl::StatusOr<Session::Next> ProgramSession::Follow() {
  while (true) {
    TRIBUTARY_ASSIGN_OR_RETURN(const bool trains, driver_->Follow());
    if (!trains) {
      over_ = true;
      if (!driver_->status().ok()) return driver_->status();
      return Next::kEnd;
    }
    plan_ = driver_->plan();
    const absl::Status begun = BeginPlan();
    if (begun.ok()) return Next::kStep;
    driver_->Trained(begun);
  }
}

absl::StatusOr<std::unique_ptr<GradientSynchronizer>>
ProgramSession::Connect() {
  TRIBUTARY_ASSIGN_OR_RETURN(rates_,
                             ProgramRates::Create(job(), plan_.total_steps()));
  const auto rate = [rates = rates_.get()](int64_t step) {
    return rates->At(step);
  };
  if (StrategyOf(job()).uses_servers()) {
    return MakeServerSynchronizer(
        {.member = member_.get(),
         .model = parameters_.get(),
         .ops = ops_.get(),
         .gradient_memory = parameters_->gradient_memory(),
         .total_steps = plan_.total_steps(),
         .learning_rate = rate,
         .groups = rates_->Groups(),
         .recomputes = recomputes_,
         .on_silent_shard =
             [this](int shard) { metrics_.SetSilentShard(shard); }},
        plan_);
  }
  GroupSynchronizerParts parts;
  parts.group = {.member = member_.get(),
                 .ops = ops_.get(),
                 .coordinator = options_.coordinator,
                 .access = &options_.access};
  parts.model = parameters_.get();
  for (int r = 0; r < world(); ++r) parts.ranks.push_back(r);
  parts.learning_rate = rate;
  parts.groups = rates_->Groups();
  return MakeGroupSynchronizer(std::move(parts), plan_);
}

absl::Status ProgramSession::BeginPlan() {
  TRIBUTARY_ASSIGN_OR_RETURN(synchronizer_, Connect());
  canceller_.Attach(
      [this](const std::string& why) { synchronizer_->Cancel(why); },
      plan_.epoch());
  GradientSynchronizer::MakeWeights initial;
  if (rank() == 0) initial = [this] { return initial_; };
  TRIBUTARY_ASSIGN_OR_RETURN(
      steps_, synchronizer_->Start(initial, [this](const RankProgress& p) {
        member_->StartAt(plan_.epoch(), p.steps, p.begun);
      }));
  metrics_.SetSilentShard(-1);
  member_->display().SetWaitingFor({});
  if (steps_ > 0) spdlog::info("going on after step {}", steps_);
  this_step_ = {};
  parameters_->Publish(steps_);
  return absl::OkStatus();
}

void ProgramSession::EndPlan() {
  canceller_.Detach();
  synchronizer_.reset();
  in_step_ = false;
}

absl::StatusOr<Session::Next> ProgramSession::GoOn(const absl::Status& status) {
  driver_->Trained(status);
  TRIBUTARY_ASSIGN_OR_RETURN(const Next next, Follow());
  return next == Next::kStep ? Next::kMoved : Next::kEnd;
}

absl::StatusOr<Session::Next> ProgramSession::BeginStep(
    const StepStart& start) {
  if (in_step_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", steps_ + 1, " has begun already"));
  }
  if (over_ || steps_ >= plan_.total_steps()) return Next::kEnd;
  TRIBUTARY_RETURN_IF_ERROR(rates_->Give(start.learning_rates));
  if (const std::string name = parameters_->FirstChanged(); !name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the program has written into the weights of \"", name,
        "\" after step ", steps_,
        ", and the next step would overwrite them; set weights before the job "
        "begins, or change a copy"));
  }
  const absl::Status may_begin =
      PassGate(steps_ + 1, member_.get(), synchronizer_.get());
  if (absl::IsCancelled(may_begin)) return Next::kEnd;
  if (!may_begin.ok()) return GoOn(may_begin);
  this_step_.Begin(start.samples);
  in_step_ = true;
  synchronizer_->SetLearningRates(rates_->given());
  synchronizer_->BeginStep(steps_, start.samples);
  return Next::kStep;
}

void ProgramSession::GradientReady(int parameter) {
  const int64_t begin = clock_.NowMicros();
  float* const gradient = parameters_->gradient(parameter);
  const ParameterSpec& spec = declaration_.parameters[parameter];
  // A NaN in the gradient would spoil the mean even with weight 0.
  if (this_step_.samples() == 0) std::fill_n(gradient, spec.size(), 0.0f);
  this_step_.AddGradient(parameter, spec, gradient);
  synchronizer_->GradientReady(parameter);
  this_step_.AddPush(SecondsSince(clock_, begin));
}

absl::StatusOr<Session::Next> ProgramSession::FinishStep(
    const StepResult& result) {
  if (!in_step_) {
    return absl::FailedPreconditionError("no step has begun");
  }
  const int64_t begin = clock_.NowMicros();
  const absl::StatusOr<int64_t> finished = synchronizer_->FinishStep();
  in_step_ = false;
  TRIBUTARY_RETURN_IF_ERROR(Cancelled());
  if (!finished.ok()) return GoOn(finished.status());
  const int64_t step = std::exchange(steps_, *finished);
  parameters_->Publish(steps_);
  Report(result, step, SecondsSince(clock_, begin));
  return steps_ == step + 1 ? Next::kStep : Next::kMoved;
}

void ProgramSession::Report(const StepResult& result, int64_t step,
                            double wait_seconds) {
  const GradientSynchronizer::Traffic traffic = synchronizer_->traffic();
  member_->display().SetBytes(traffic.bytes_sent, traffic.bytes_received);
  v1::StepReport report = this_step_.Finish(
      result, wait_seconds, /*dropped=*/steps_ != step + 1, traffic);
  report.set_step(step + 1);
  report.set_epoch(EpochOf(step + 1));
  report.set_learning_rate(rates_->At(step));
  report.set_skipped(synchronizer_->skipped());
  metrics_.CountStep(
      report, {traffic.bytes_sent, traffic.bytes_received, traffic.retries});
  member_->ReportStep(report);
  for (int64_t skipped = step + 1; skipped < steps_; ++skipped) {
    v1::StepReport empty;
    empty.set_step(skipped + 1);
    empty.set_epoch(EpochOf(skipped + 1));
    empty.set_learning_rate(report.learning_rate());
    member_->ReportStep(empty);
  }
}

bool ProgramSession::is_late() const { return SyncTraitsOf(job()).delay > 0; }

absl::Status ProgramSession::ShowNewest() {
  if (synchronizer_ == nullptr || in_step_) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(synchronizer_->ShowNewest());
  parameters_->Publish(steps_);
  return absl::OkStatus();
}

absl::Status ProgramSession::HideNewest() {
  if (synchronizer_ == nullptr || in_step_) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(synchronizer_->HideNewest());
  parameters_->Publish(steps_);
  return absl::OkStatus();
}

absl::Status ProgramSession::ReportEvaluation(const v1::EvaluationPart& part) {
  return member_->results().ReportEvaluation(steps_, EpochOf(steps_), part);
}

absl::StatusOr<Session::Next> ProgramSession::Finish() {
  if (over_) return Next::kEnd;
  if (synchronizer_ == nullptr) {  // no plan yet
    Fail("the program ended before its first step");
    return Next::kEnd;
  }
  if (in_step_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the program ended within step ", steps_ + 1, ", before its step()"));
  }
  const int64_t round = StepCountOf(job()).steps_an_update;
  if (steps_ < plan_.total_steps() && steps_ % round != 0) {
    const std::string why = absl::StrCat(
        "the program of rank ", rank(), " ended after ", steps_,
        " steps, within a round of ", round,
        " (local_sgd), whose steps the servers do not have; take whole rounds, "
        "or declare the total steps");
    Fail(why);
    return absl::FailedPreconditionError(why);
  }
  if (steps_ < plan_.total_steps()) {
    const absl::Status ended =
        member_->EndProgram([this] { return synchronizer_->Settle(); });
    if (absl::IsOutOfRange(ended)) {
      const std::string why =
          absl::StrCat("the program of rank ", rank(), " ended after ", steps_,
                       " steps, but another rank has begun step ", steps_ + 1,
                       "; every rank must take the same number of steps");
      Fail(why);
      return absl::FailedPreconditionError(why);
    }
    if (!ended.ok()) return GoOn(ended);
  }
  if (const absl::Status taken =
          TakeAskedCheckpoint(steps_, member_.get(), synchronizer_.get());
      !taken.ok()) {
    return GoOn(taken);
  }
  if (const absl::Status end = synchronizer_->End(steps_); !end.ok()) {
    return GoOn(end);
  }
  if (is_late()) parameters_->Publish(steps_);
  if (const absl::Status given = GiveWeights(); !given.ok()) {
    return GoOn(given);
  }
  driver_->Trained(absl::OkStatus());
  TRIBUTARY_ASSIGN_OR_RETURN(const Next next, Follow());
  return next == Next::kStep ? Next::kMoved : Next::kEnd;
}

absl::Status ProgramSession::GiveWeights() {
  return tributary::GiveWeights(*member_, *parameters_, *ops_, plan_, steps_);
}

void ProgramSession::Fail(const std::string& why) {
  if (over_) return;
  EndPlan();
  over_ = true;
  member_->Fail(absl::AbortedError(why));
}

void ProgramSession::Cancel(const std::string& why) {
  {
    absl::MutexLock lock(&mu_);
    cancelled_ = why;
  }
  canceller_.Cancel(absl::CancelledError(why));
}

absl::Status ProgramSession::Cancelled() const {
  absl::MutexLock lock(&mu_);
  return cancelled_.empty() ? absl::OkStatus()
                            : absl::CancelledError(cancelled_);
}

bool ProgramSession::skipped() const {
  return synchronizer_ != nullptr && synchronizer_->skipped();
}

Session::Traffic ProgramSession::traffic() const {
  if (synchronizer_ == nullptr) return {};
  const GradientSynchronizer::Traffic traffic = synchronizer_->traffic();
  return {traffic.bytes_sent, traffic.bytes_received};
}

}  // namespace tributary
