// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_rank.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/files/residual_file.h"
#include "common/checkpoint/restore.h"
#include "common/job/job_options.h"
#include "common/member/declaration.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// Longest time between the gradients of two parameters.
constexpr int64_t kLayerMicros = 150;

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
      host_(context, process),
      memory_(context->model) {}

void SimulatedRank::Start() {
  context_->fibers.Start(process_, [this] {
    const absl::Status status = Live();
    LetGo();
    options_.on_end(status);
  });
}

void SimulatedRank::LetGo() {
  ended_ = true;
  DropCheckpointer();
}

void SimulatedRank::Adopt(const std::vector<uint32_t>& ranks) {
  for (const uint32_t rank : ranks) {
    SimulatedRank*& adopted = adopted_[rank];
    if (adopted == nullptr || adopted->ended()) {
      adopted = options_.on_adopt(rank);
    }
  }
}

absl::StatusOr<std::unique_ptr<Member>> SimulatedRank::Join() {
  MemberOptions options =
      host_.Options(v1::ROLE_WORKER, absl::StrCat("-", options_.number));
  options.wanted_index = options_.wanted_index;
  options.callbacks.on_end = [this](const absl::Status& status) {
    canceller_.Cancel(status.ok() ? absl::CancelledError("the job is done")
                                  : status);
  };
  options.callbacks.on_new_plan = [this](uint64_t epoch) {
    canceller_.CancelBefore(epoch);
  };
  options.callbacks.on_adopt = [this](const std::vector<uint32_t>& ranks) {
    Adopt(ranks);
  };
  return Member::Join(std::move(options));
}

absl::Status SimulatedRank::Live() {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Member> member, Join());
  const absl::Cleanup gone = [this] { member_ = nullptr; };
  member_ = member.get();
  rank_ = member->index();
  TRIBUTARY_TRACE(context_->world, process_->name(), " (pid ", process_->pid(),
                  ") has place ", *rank_, " as incarnation ",
                  member->incarnation());
  RankDriver driver(
      {.life = {.lease_micros = context_->scenario.lease_ms * kMilli}}, member_,
      this);
  while (true) {
    doing_ = finished_ ? "waits for the end" : "waits for a plan";
    TRIBUTARY_ASSIGN_OR_RETURN(const bool trains, driver.Follow());
    if (!trains) return driver.status();
    const absl::Status status = Train(driver.plan());
    TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ", *rank_, ", ",
                    Doing(), " in plan epoch ", epoch(), ": ",
                    status.ToString());
    finished_ = status.ok();
    driver.Trained(status);
  }
}

absl::Status SimulatedRank::Declare() {
  doing_ = "declares the model";
  // Two kinds of machines, which compute equal gradients nevertheless.
  TRIBUTARY_ASSIGN_OR_RETURN(
      recomputes_,
      member_->DeclareArithmetic(process_->pid() % 2 == 0 ? "even" : "odd"));
  Declaration declaration;
  declaration.parameters = context_->model.parameters();
  declaration.total_steps = context_->scenario.steps;
  declaration.steps_per_epoch = context_->scenario.steps;
  return member_->DeclareModel(declaration);
}

void SimulatedRank::EndPlan() {
  DropCheckpointer();
  finished_ = false;
}

absl::Status SimulatedRank::GiveWeights() {
  context_->world.Violate("a rank of a job with servers has no weights");
  return absl::UnimplementedError("no weights");
}

// ---- training under a plan

absl::Status SimulatedRank::Connect() {
  ParameterClient::Options options;
  options.plan = plan_;
  options.rank = *rank_;
  options.incarnation = member_->incarnation();
  options.recomputes = recomputes_;
  options.transport = Transport::kGrpc;
  if (context_->scenario.adds_early) {
    options.total_samples = [model = &context_->model](int64_t step) {
      return model->AllSamples(step);
    };
  }
  options.for_tests.cut = context_->model.Cut(plan_.servers_size());
  options.for_tests.calls = [this](const v1::Plan& plan) {
    auto calls = std::make_unique<SimulatedCalls>(
        context_, process_, rank_, plan, std::make_shared<TagQueue>());
    calls_ = calls.get();
    return calls;
  };
  ParameterServerSynchronizer::Options made;
  TRIBUTARY_ASSIGN_OR_RETURN(made.client,
                             ParameterClient::Connect(std::move(options)));
  made.model = &memory_;
  TRIBUTARY_ASSIGN_OR_RETURN(made.device, DeviceBeside(&context_->ops));
  made.mode = mode_;
  for (int p = 0; p < std::ssize(memory_.specs); ++p) {
    made.place_in_plan.push_back(p);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      synchronizer_, ParameterServerSynchronizer::Create(std::move(made)));
  return absl::OkStatus();
}

absl::Status SimulatedRank::Train(const v1::Plan& plan) {
  plan_ = plan;
  TRIBUTARY_RETURN_IF_ERROR(Connect());
  const absl::Cleanup closed = [this] {
    calls_ = nullptr;
    synchronizer_.reset();
  };
  canceller_.Attach(
      [this](const std::string& why) { synchronizer_->Cancel(why); },
      plan_.epoch());
  const absl::Cleanup detached = [this] { canceller_.Detach(); };
  const absl::Status status = TrainUnderPlan();
  if (status.ok() && checkpointer_ &&
      LeavesCheckpointAtEnd(JobOf(context_->scenario), plan_.start_step(),
                            step_)) {
    WriteResidual();
  }
  return status;
}

absl::Status SimulatedRank::TrainUnderPlan() {
  TRIBUTARY_RETURN_IF_ERROR(Begin());
  TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ", *rank_,
                  ", goes on after step ", step_, " of plan epoch ", epoch());
  while (step_ < context_->scenario.steps) {
    doing_ = "is at the gate";
    const absl::Status may_begin = member_->BeginStep(step_ + 1);
    if (may_begin.ok() || absl::IsCancelled(may_begin)) WriteIfAsked();
    if (absl::IsCancelled(may_begin)) return absl::OkStatus();
    TRIBUTARY_RETURN_IF_ERROR(may_begin);
    TRIBUTARY_RETURN_IF_ERROR(Compute());
    TRIBUTARY_RETURN_IF_ERROR(FinishStep());
  }
  return absl::OkStatus();
}

// Learns where the job stands and takes the weights.
absl::Status SimulatedRank::Begin() {
  doing_ = "takes weights";
  GradientSynchronizer::MakeWeights initial;
  if (*rank_ == 0) initial = [this] { return context_->model.Initial(); };
  TRIBUTARY_ASSIGN_OR_RETURN(
      step_,
      synchronizer_->Start(initial, [this](const RankProgress& progress) {
        progress_ = progress;
        StartAt(progress.steps);
      }));
  return StartResidual();
}

absl::Status SimulatedRank::Compute() {
  doing_ = "computes";
  context_->oracle.Residual(*rank_, step_, residual_);
  context_->model.Gradient(*rank_, step_, memory_.weights, &memory_.gradients);
  const int64_t mean = context_->scenario.compute_micros[*rank_];
  context_->fibers.Sleep(
      context_->world.random().Between(mean / 2, mean * 3 / 2),
      World::Kind::kWork);
  doing_ = "pushes";
  synchronizer_->BeginStep(step_, context_->model.Samples(*rank_, step_));
  for (size_t p = memory_.gradients.size(); p-- > 0;) {
    context_->fibers.Sleep(context_->world.random().Between(0, kLayerMicros),
                           World::Kind::kWork);
    synchronizer_->GradientReady(static_cast<int>(p));
  }
  return absl::OkStatus();
}

absl::Status SimulatedRank::FinishStep() {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t finished,
                             synchronizer_->FinishStep());
  Report(finished);
  return absl::OkStatus();
}

void SimulatedRank::Report(int64_t finished) {
  for (int64_t step = step_; step < finished; ++step) {
    v1::StepReport report;
    report.set_step(step + 1);
    report.set_epoch(1);
    report.set_samples(
        finished == step_ + 1 ? context_->model.Samples(*rank_, step) : 0);
    member_->ReportStep(report);
  }
  step_ = finished;
  AddToResidual();
}

// ---- the residual

absl::Status SimulatedRank::StartResidual() {
  DropCheckpointer();
  if (!context_->scenario.residuals) return absl::OkStatus();
  checkpointer_ = std::make_shared<SimulatedCheckpointer>(
      context_, process_, ResidualSeriesOf(plan_, static_cast<int>(*rank_)),
      /*num_blocks=*/1,
      [this](const v1::CheckpointReport& report) { ReportCheckpoint(report); });
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
  if (member_->TakeAskedCheckpoint(step_) && checkpointer_) {
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
  if (member_ != nullptr) member_->ReportCheckpoint(report);
}

std::string SimulatedRank::Doing() const {
  return absl::StrCat(doing_, ", step ", step_ + 1);
}

}  // namespace tributary::simulation
