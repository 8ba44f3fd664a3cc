// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_rank.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/member/declaration.h"
#include "common/status/status_macros.h"
#include "tests/simulation/processes/checkpoint_files.h"
#include "tests/simulation/world/micros.h"
#include "worker/rank/session/pass_gate.h"
#include "worker/rank/session/server_synchronizer.h"

namespace tributary::simulation {
namespace {

// Longest time between the gradients of two parameters.
constexpr int64_t kLayerMicros = 150;

}  // namespace

SimulatedRank::SimulatedRank(Context* context, Process* process,
                             Options options)
    : context_(context),
      process_(process),
      options_(std::move(options)),
      host_(context, process),
      memory_(context->model) {}

absl::StatusOr<std::unique_ptr<Member>> SimulatedRank::Join(
    Adoptions* adoptions) {
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
  options.callbacks.on_adopt = [adoptions](const std::vector<uint32_t>& ranks) {
    adoptions->Adopt(ranks);
  };
  return Member::Join(std::move(options));
}

absl::Status SimulatedRank::Run() {
  const absl::Cleanup ended = [this] { ended_ = true; };
  Adoptions adoptions(options_.adopt);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Member> member,
                             Join(&adoptions));
  TRIBUTARY_TRACE(context_->world, process_->name(), " (pid ", process_->pid(),
                  ") has place ", member->index(), " as incarnation ",
                  member->incarnation());
  const absl::Status status = Live(member.get());
  ended_ = true;
  adoptions.Join();
  return status;
}

absl::Status SimulatedRank::Live(Member* member) {
  const absl::Cleanup gone = [this] {
    EndPlan();
    member_ = nullptr;
  };
  member_ = member;
  rank_ = member->index();
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
  // Simulates two kinds of machines, which compute equal gradients
  // nevertheless.
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
  calls_ = nullptr;
  synchronizer_.reset();
  finished_ = false;
}

absl::Status SimulatedRank::GiveWeights() {
  context_->world.Violate("a rank of a job with servers has no weights");
  return absl::UnimplementedError("no weights");
}

// ---- training under a plan

absl::Status SimulatedRank::Connect() {
  ServerSynchronizerParts parts;
  parts.member = member_;
  parts.model = &memory_;
  parts.ops = &context_->ops;
  parts.total_steps = context_->scenario.steps;
  if (context_->scenario.adds_early) {
    parts.all_samples = [model = &context_->model](int64_t step) {
      return model->AllSamples(step);
    };
  }
  parts.recomputes = recomputes_;
  parts.for_tests.client.cut = context_->model.Cut(plan_.servers_size());
  parts.for_tests.client.calls = [this](const v1::Plan& plan) {
    auto calls = std::make_unique<SimulatedCalls>(
        context_, process_, rank_, plan, std::make_shared<TagQueue>());
    calls_ = calls.get();
    return calls;
  };
  parts.for_tests.disk = [this](const v1::Plan& plan,
                                ResidualCheckpoints::Options* options) {
    options->write = WriterOf(context_);
    if (plan.restore_from().empty()) return;
    options->restore = [this, folder = plan.restore_from()](
                           absl::Span<float* const> residuals) {
      const absl::Status read = context_->disk.ReadResidual(
          folder, static_cast<int>(*rank_), residuals);
      if (!read.ok() && !context_->disk.damaged()) {
        context_->world.Violate(
            absl::StrCat("a residual that nobody has damaged cannot be read: ",
                         std::string(read.message())));
      }
      return read;
    };
  };
  TRIBUTARY_ASSIGN_OR_RETURN(synchronizer_,
                             MakeServerSynchronizer(parts, plan_));
  return absl::OkStatus();
}

absl::Status SimulatedRank::Train(const v1::Plan& plan) {
  plan_ = plan;
  TRIBUTARY_RETURN_IF_ERROR(Connect());
  canceller_.Attach(
      [this](const std::string& why) { synchronizer_->Cancel(why); },
      plan_.epoch());
  const absl::Cleanup detached = [this] { canceller_.Detach(); };
  doing_ = "takes weights";
  GradientSynchronizer::MakeWeights initial;
  if (*rank_ == 0) initial = [this] { return context_->model.Initial(); };
  TRIBUTARY_ASSIGN_OR_RETURN(
      step_,
      synchronizer_->Start(initial, [this](const RankProgress& progress) {
        member_->StartAt(epoch(), progress.steps, progress.begun);
      }));
  return TrainSteps();
}

absl::Status SimulatedRank::TrainSteps() {
  TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ", *rank_,
                  ", goes on after step ", step_, " of plan epoch ", epoch());
  while (step_ < context_->scenario.steps) {
    doing_ = "is at the gate";
    const absl::Status may_begin =
        PassGate(step_ + 1, member_, synchronizer_.get());
    if (absl::IsCancelled(may_begin)) break;
    TRIBUTARY_RETURN_IF_ERROR(may_begin);
    Compute();
    TRIBUTARY_ASSIGN_OR_RETURN(const int64_t finished,
                               synchronizer_->FinishStep());
    Report(finished);
  }
  return synchronizer_->End(step_);
}

void SimulatedRank::Compute() {
  doing_ = "computes";
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
}

std::string SimulatedRank::Doing() const {
  return absl::StrCat(doing_, ", step ", step_ + 1);
}

}  // namespace tributary::simulation
