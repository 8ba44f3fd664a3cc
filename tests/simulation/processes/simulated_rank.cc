// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/files/residual_file.h"
#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/member/report_checkpoint.h"
#include "common/plan/plan_codec.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

v1::RegisterRequest Registration(const SimulatedRank::Options& options,
                                 const Process& process) {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance(absl::StrCat(
      process.name(), "-", process.pid(),
      options.adopted ? absl::StrCat("-", *options.wanted_index) : ""));
  request.set_host(process.name());
  request.set_pid(process.pid());
  // Two kinds of machines, which compute equal gradients nevertheless.
  request.set_arithmetic(process.pid() % 2 == 0 ? "even" : "odd");
  if (options.wanted_index) request.set_wanted_index(*options.wanted_index);
  return request;
}

ApplyMode ModeOf(const Scenario& scenario) {
  if (!scenario.gathers()) return ApplyMode::kSeparate;
  return scenario.sync == Scenario::Sync::kBackup ? ApplyMode::kBackup
                                                  : ApplyMode::kBulk;
}

}  // namespace

SimulatedRank::SimulatedRank(Context* context, Process* process,
                             Options options)
    : context_(context),
      process_(process),
      options_(std::move(options)),
      mode_(ModeOf(context->scenario)),
      member_({.world = &context->world,
               .network = &context->network,
               .process = process,
               .registration = Registration(options_, *process),
               .on_joined = [this](const absl::Status& s) { Joined(s); },
               .on_news = [this] { OnNews(); }}),
      client_(context, process),
      life_({.lease_micros = context->scenario.lease_ms * kMilli}),
      gradient_(context->model.Initial()) {}

void SimulatedRank::LetGo() {
  ended_ = true;
  DropCheckpointer();
  member_.Leave();
  client_.Drop();
}

void SimulatedRank::End(const absl::Status& status) {
  if (ended_) return;
  LetGo();
  options_.on_end(status);
}

void SimulatedRank::Joined(const absl::Status& status) {
  if (!status.ok()) return End(status);
  rank_ = member_.index();
  Live();
}

void SimulatedRank::OnNews() {
  if (ended_) return;
  for (uint32_t rank : member_.state().adopt_ranks()) {
    SimulatedRank*& adopted = adopted_[rank];
    if (adopted == nullptr || adopted->ended()) {
      adopted = options_.on_adopt(rank);
    }
  }
  if (awaits_plan_) {
    const absl::Status news = member_.state().NewsAfter(plan_.epoch());
    if (absl::IsDeadlineExceeded(news)) return;
    awaits_plan_ = false;
    life_.Replanned(news);
  }
  at_gate_ ? NextStep() : Live();
}

void SimulatedRank::Live() {
  using Act = RankLife::Act;
  const Act act = life_.Next(&member_.state(), context_->world.now());
  switch (act) {
    case Act::kDeclareModel:
      return DeclareModel();
    case Act::kGetPlan:
      return GetPlan();
    case Act::kTrain:
      return Train();
    case Act::kCancel:
      return Trained(absl::CancelledError("the plan or the job is over"));
    case Act::kFail:
      doing_ = "reports its error";
      return member_.Fail(life_.status(), [this] { End(life_.status()); });
    case Act::kEnd:
      return End(life_.status());
    case Act::kWait:
      return member_.Nudge();
    case Act::kReportUnreadable:
      return ReportUnreadable();
    case Act::kGiveWeights:
      context_->world.Violate("a rank of a job with servers has no weights");
  }
}

void SimulatedRank::DeclareModel() {
  doing_ = "declares the model";
  v1::DeclareModelRequest declaration;
  ToProto(context_->model.parameters(), declaration.mutable_parameters());
  declaration.set_total_steps(context_->scenario.steps);
  declaration.set_steps_per_epoch(context_->scenario.steps);
  member_.DeclareModel(
      declaration, [this](const absl::StatusOr<v1::DeclareModelResponse>& s) {
        life_.Declared(s.status());
        Live();
      });
}

void SimulatedRank::GetPlan() {
  doing_ = "waits for a plan";
  member_.GetPlan(life_.epoch() + 1, [this](absl::StatusOr<v1::Plan> plan) {
    if (plan.ok()) plan_ = *std::move(plan);
    life_.Planned(plan.status(), plan_.epoch());
    Live();
  });
}

// ---- training under a plan

SimulatedClient::Done SimulatedRank::Then(std::function<void()> then) {
  return [this, then = std::move(then)](const absl::Status& status) {
    status.ok() ? then() : Trained(status);
  };
}

void SimulatedRank::Train() {
  doing_ = "reads its progress";
  step_ = 0;
  client_.Begin(plan_, {*rank_, member_.incarnation(), member_.recomputes()});
  client_.ReadProgress([this](const absl::StatusOr<RankProgress>& progress) {
    if (!progress.ok()) return Trained(progress.status());
    progress_ = *progress;
    if (progress_.initialized || *rank_ != 0) return PullStart();
    doing_ = "gives first weights";
    client_.Initialize(Then([this] { PullStart(); }));
  });
}

void SimulatedRank::PullStart() {
  doing_ = "pulls";
  const std::optional<int64_t> finished = FinishedBeforePull(mode_, progress_);
  if (finished) StartAt(*finished);
  client_.Pull(StartingWeights(mode_, progress_), Then([this, finished] {
                 if (!finished) StartAt(client_.oldest_version());
                 const absl::Status restored = StartResidual();
                 if (!restored.ok()) return Trained(restored);
                 TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ",
                                 *rank_, ", goes on after step ", step_,
                                 " of plan epoch ", epoch());
                 NextStep();
               }));
}

void SimulatedRank::NextStep() {
  doing_ = "is at the gate";
  at_gate_ = false;
  if (step_ >= context_->scenario.steps) return Trained(absl::OkStatus());
  const std::optional<absl::Status> may_begin =
      member_.state().TryToBegin(step_ + 1);
  if (!may_begin) {
    at_gate_ = true;
    return member_.Nudge();
  }
  if (may_begin->ok() || absl::IsCancelled(*may_begin)) WriteIfAsked();
  if (absl::IsCancelled(*may_begin)) return Trained(absl::OkStatus());
  if (!may_begin->ok()) return Trained(*may_begin);
  Compute();
}

void SimulatedRank::Compute() {
  doing_ = "computes";
  context_->oracle.Residual(*rank_, step_, residual_);
  context_->model.Gradient(*rank_, step_, client_.weights(), &gradient_);
  const int64_t mean = context_->scenario.compute_micros[*rank_];
  context_->world.After(
      context_->world.random().Between(mean / 2, mean * 3 / 2), process_,
      World::Kind::kWork, [this, mine = computing_] {
        if (!ended_ && mine == computing_) Push();
      });
}

void SimulatedRank::Push() {
  doing_ = "pushes";
  client_.PushPull(step_, gradient_, Then([this] { FinishStep(); }));
}

void SimulatedRank::FinishStep() {
  const std::optional<WantedWeights> wanted =
      CatchUp(mode_, step_ + 1, client_.newest_version());
  if (!wanted) return Report(step_ + 1);
  doing_ = "catches up";
  client_.Pull(*wanted, Then([this] { Report(client_.oldest_version()); }));
}

void SimulatedRank::Report(int64_t finished) {
  for (int64_t step = step_; step < finished; ++step) {
    v1::StepReport report;
    report.set_step(step + 1);
    report.set_epoch(1);
    report.set_samples(
        finished == step_ + 1 ? context_->model.Samples(*rank_, step) : 0);
    member_.state().ReportStep(report);
  }
  step_ = finished;
  AddToResidual();
  NextStep();
}

void SimulatedRank::Trained(const absl::Status& status) {
  TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ", *rank_, ", ",
                  Doing(), " in plan epoch ", epoch(), ": ", status.ToString());
  doing_ = status.ok() ? "waits for the end" : "waits for news";
  client_.Drop();
  if (!status.ok()) {
    DropCheckpointer();
  } else if (checkpointer_ &&
             LeavesCheckpointAtEnd(JobOf(context_->scenario),
                                   plan_.start_step(), step_)) {
    WriteResidual();
  }
  at_gate_ = false;
  ++computing_;
  life_.Trained(status);
  Live();
}

// ---- the residual

absl::Status SimulatedRank::StartResidual() {
  DropCheckpointer();
  if (!context_->scenario.residuals) return absl::OkStatus();
  checkpointer_ = std::make_shared<SimulatedCheckpointer>(
      context_, process_, ResidualSeriesOf(plan_, static_cast<int>(*rank_)),
      /*num_blocks=*/1, [this](const v1::CheckpointReport& report) {
        if (!ended_) ReportCheckpoint(report);
      });
  residual_.assign(context_->model.parameters()[0].size(), 0);
  written_ = 0;
  if (plan_.restore_from().empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<float>> restored =
      context_->disk.ReadResidual(plan_.restore_from(), *rank_);
  if (restored.ok()) {
    residual_ = *std::move(restored);
    return absl::OkStatus();
  }
  if (!context_->disk.damaged()) {
    context_->world.Violate(
        absl::StrCat("a residual that nobody has damaged cannot be read: ",
                     std::string(restored.status().message())));
  }
  return Unreadable(restored.status());
}

void SimulatedRank::AddToResidual() {
  if (!context_->scenario.residuals) return;
  for (float& value : residual_) value += Model::ResidualOfStep(*rank_);
  const int64_t every = context_->scenario.checkpoint_every;
  if (every > 0 && step_ % every == 0) WriteResidual();
}

void SimulatedRank::WriteIfAsked() {
  if (member_.state().TakeAskedCheckpoint(step_) && checkpointer_) {
    WriteResidual();
  }
}

void SimulatedRank::WriteResidual() {
  if (std::exchange(written_, step_) == step_) return;
  const auto size = static_cast<int64_t>(residual_.size());
  Block block;
  block.size = size;
  block.slices.push_back({0, 0, size, 0});
  SharedBuffer copy(size);
  std::copy(residual_.begin(), residual_.end(), copy.data());
  checkpointer_->Take(
      {.steps = step_, .block = &block, .weights = copy, .state = {}});
}

void SimulatedRank::DropCheckpointer() {
  if (checkpointer_) checkpointer_->Finish([] {});
  checkpointer_.reset();
}

void SimulatedRank::ReportCheckpoint(const v1::CheckpointReport& report) {
  member_.state().ReportCheckpoint(report);
  member_.Nudge();
}

void SimulatedRank::ReportUnreadable() {
  doing_ = "waits for a plan that begins with another checkpoint";
  awaits_plan_ = true;
  ReportCheckpoint(UnreadableReport(life_.status(), plan_));
}

std::string SimulatedRank::Doing() const {
  return absl::StrCat(doing_, ", step ", step_ + 1);
}

}  // namespace tributary::simulation
