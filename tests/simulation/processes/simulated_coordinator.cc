// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "coordinator/service/read_weights.h"
#include "tests/simulation/processes/simulated_calls.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// The values of Coordinator and of the program that runs it.
constexpr absl::Duration kLeaseTick = absl::Milliseconds(100);
constexpr absl::Duration kUpdate = absl::Seconds(1);

}  // namespace

SimulatedCoordinator::SimulatedCoordinator(int64_t pid, Context* context,
                                           JobControl::Options options)
    : Process(pid, "coordinator"),
      context_(context),
      start_step_(options.state.start.step),
      recorded_step_(std::max(options.state.start.step,
                              options.predecessor.recorded.step)) {
  const bool checkpoints =
      context->scenario.checkpoint_every > 0 || context->scenario.at_end;
  options.clock = context->world.clock();
  const absl::Duration loss =
      absl::Microseconds(options.state.loss_timeout_micros);
  control_ = std::make_unique<JobControl>(std::move(options));
  control_->AllowStart(checkpoints ? "checkpoints" : "");
  rounds_.emplace(
      JobRounds::Options{.clock = context->world.clock(), .loss_timeout = loss},
      control_.get(), static_cast<JobFiles*>(this));
}

void SimulatedCoordinator::Start() {
  context_->fibers.Start(this, [this] { TakeUpdates(); });
  context_->fibers.Start(this, [this] { WatchLeases(); });
  context_->fibers.Start(this, [this] { rounds_->Run(); });
}

// ---- calls

void SimulatedCoordinator::GetPlan(const v1::GetPlanRequest& request,
                                   const MemberPlace& member,
                                   Reply<v1::Plan> reply) {
  context_->fibers.Start(this, [this, request, member, reply] {
    reply(control_->calls().GetPlan(request, member));
  });
}

uint64_t SimulatedCoordinator::PlanEpoch() {
  const absl::StatusOr<v1::Plan> plan = control_->calls().GetPlan({});
  return plan.ok() ? plan->epoch() : 0;
}

// ---- threads

void SimulatedCoordinator::WatchLeases() {
  while (true) control_->Tick(kLeaseTick);
}

void SimulatedCoordinator::TakeUpdates() {
  World& world = context_->world;
  while (true) {
    const JobUpdate update = control_->WaitForUpdate(kUpdate);
    for (const StepRecord& record : update.steps) {
      if (record.step != ++recorded_step_) {
        world.Violate(absl::StrCat("step ", record.step,
                                   " is recorded where step ", recorded_step_,
                                   " follows"));
      }
    }
    for (const std::string& notice : update.notices) {
      TRIBUTARY_TRACE(world, "coordinator: ", notice);
    }
    if (update.phase != phase_) {
      TRIBUTARY_TRACE(world, "coordinator: ", v1::JobPhase_Name(update.phase),
                      " ", update.message);
    }
    phase_ = update.phase;
    if (over()) message_ = update.message;
  }
}

// ---- files

void SimulatedCoordinator::RemoveFailed(const std::string& folder) {
  context_->disk.RemoveIncomplete(folder);
}

absl::Status SimulatedCoordinator::WriteManifest(
    const PendingManifest& pending) {
  context_->fibers.Sleep(context_->world.random().Scale(kMilli, 50 * kMilli),
                         World::Kind::kIdle);
  const absl::Status status = context_->disk.WriteManifest(pending.manifest);
  TRIBUTARY_TRACE(context_->world, "checkpoint of step ",
                  pending.manifest.step(), ": ", status.ToString());
  return status;
}

void SimulatedCoordinator::RevokeManifest(const PendingManifest& pending) {
  context_->disk.Revoke(Disk::FolderName(pending.manifest.step()));
}

void SimulatedCoordinator::ManifestWritten(const PendingManifest& pending,
                                           bool saved) {
  const absl::StatusOr<WholeState> whole = context_->disk.Read(
      Disk::FolderName(pending.manifest.step()), context_->model.parameters(),
      static_cast<size_t>(pending.manifest.state_names_size()));
  if (whole.ok()) {
    context_->oracle.Checkpoint(*whole);
  } else {
    context_->world.Violate(
        absl::StrCat("a checkpoint that is complete cannot be read: ",
                     std::string(whole.status().message())));
  }
  if (saved) context_->disk.Prune(2);
}

// As Coordinator::GoBackBefore, for a job whose checkpoints are all in one
// directory.
absl::StatusOr<JobFiles::OlderCheckpoint> SimulatedCoordinator::GoBackBefore(
    const UnreadableCheckpoint& lost) {
  if (context_->disk.OlderWhole(lost.step, lost.step + 1)) {
    return absl::DataLossError(lost.why);
  }
  const std::optional<int64_t> older =
      context_->disk.OlderWhole(start_step_, lost.step);
  if (!older && start_step_ > 0) return absl::DataLossError(lost.why);
  context_->disk.RemoveAfter(older.value_or(0));
  return OlderCheckpoint{older.value_or(0),
                         older ? Disk::FolderName(*older) : ""};
}

absl::StatusOr<FinalWeights> SimulatedCoordinator::ReadWeights(
    const v1::Plan& plan, int64_t step,
    const std::function<bool()>& cancelled) {
  ReadWeightsOptions options;
  options.clock = context_->world.clock();
  options.cancelled = cancelled;
  options.for_tests.cut = context_->model.Cut(plan.servers_size());
  options.for_tests.calls = [this](const v1::Plan& of) {
    return std::make_unique<SimulatedCalls>(context_, this,
                                            /*rank=*/std::nullopt, of,
                                            std::make_shared<TagQueue>());
  };
  absl::StatusOr<FinalWeights> weights = ReadFinalWeights(
      plan, StepCountOf(JobOf(context_->scenario)).VersionAfter(step), options);
  if (weights.ok()) weights->step = step;
  read_epoch_ = plan.epoch();
  return weights;
}

absl::Status SimulatedCoordinator::SaveWeights(const FinalWeights& weights) {
  if (context_->disk.full()) {
    return absl::ResourceExhaustedError("the disk is full");
  }
  context_->oracle.Final(weights.step, weights.tensors);
  saved_step_ = weights.step;
  saved_epoch_ = read_epoch_;
  return absl::OkStatus();
}

}  // namespace tributary::simulation
