// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/job_options.h"
#include "common/plan/plan_codec.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// As in Coordinator and ReadFinalWeights.
constexpr int64_t kRoundPause = 100 * kMilli;
constexpr int64_t kLook = 20 * kMilli;
constexpr int64_t kLastCheckpoint = 60 * kSecond;
constexpr int64_t kHold = 2 * kSecond;
constexpr int64_t kPause = 100 * kMilli;
constexpr int64_t kReadTimeout = 60 * kSecond;

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
  control_ = std::make_unique<JobControl>(std::move(options));
  control_->AllowStart(checkpoints ? "checkpoints" : "");
}

void SimulatedCoordinator::LetGo() { plan_calls_.clear(); }

void SimulatedCoordinator::Start() {
  WatchLeases();
  NextRound(0);
}

void SimulatedCoordinator::Idle(int64_t micros, std::function<void()> then) {
  context_->world.After(micros, this, World::Kind::kIdle, std::move(then));
}

// ---- calls

void SimulatedCoordinator::GetPlan(uint64_t min_epoch, int64_t wait_micros,
                                   const MemberPlace& member,
                                   Reply<v1::Plan> reply) {
  plan_calls_.push_back({min_epoch, context_->world.now() + wait_micros, member,
                         std::move(reply)});
  AnswerPlanCalls();
}

void SimulatedCoordinator::AnswerPlanCalls() {
  std::vector<PlanCall> calls = std::exchange(plan_calls_, {});
  for (PlanCall& call : calls) {
    v1::GetPlanRequest request;  // without a wait
    request.set_min_epoch(call.min_epoch);
    absl::StatusOr<v1::Plan> plan =
        control_->calls().GetPlan(request, call.member);
    if (absl::IsDeadlineExceeded(plan.status()) &&
        call.until > context_->world.now()) {
      plan_calls_.push_back(std::move(call));
    } else {
      call.reply(std::move(plan));
    }
  }
}

uint64_t SimulatedCoordinator::PlanEpoch() {
  const absl::StatusOr<v1::Plan> plan = control_->calls().GetPlan({});
  return plan.ok() ? plan->epoch() : 0;
}

void SimulatedCoordinator::TakeUpdates() {
  const JobUpdate update = control_->WaitForUpdate(absl::ZeroDuration());
  World& world = context_->world;
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
  AnswerPlanCalls();
}

// ---- the threads

void SimulatedCoordinator::WatchLeases() {
  Idle(kRoundPause, [this] {
    control_->Tick(absl::ZeroDuration());
    TakeUpdates();
    WatchLeases();
  });
}

void SimulatedCoordinator::NextRound(int64_t micros) {
  Idle(micros, [this] { Round(); });
}

void SimulatedCoordinator::Round() {
  if (const auto lost = control_->output().TakeUnreadable())
    TakeOlderCheckpoint(*lost);
  TakeUpdates();
  WriteManifests();
}

// As Coordinator::TakeOlderCheckpoint, for a job whose checkpoints are all in
// one directory.
void SimulatedCoordinator::TakeOlderCheckpoint(
    const UnreadableCheckpoint& lost) {
  if (context_->disk.OlderWhole(lost.step, lost.step + 1)) {
    return control_->Fail(lost.why);
  }
  const std::optional<int64_t> older =
      context_->disk.OlderWhole(start_step_, lost.step);
  if (!older && start_step_ > 0) return control_->Fail(lost.why);
  context_->disk.RemoveAfter(older.value_or(0));
  control_->output().GoBack(lost, older.value_or(0),
                            older ? Disk::FolderName(*older) : "");
}

void SimulatedCoordinator::WriteManifests() {
  for (const std::string& folder : control_->output().TakeFailedCheckpoints()) {
    context_->disk.RemoveIncomplete(folder.substr(folder.rfind('/') + 1));
  }
  const std::optional<PendingManifest> pending =
      control_->output().NextManifest();
  if (!pending) return SaveWhenFinished();
  Idle(context_->world.random().Scale(kMilli, 50 * kMilli), [this, pending] {
    const int64_t step = pending->manifest.step();
    const std::string folder = Disk::FolderName(step);
    const absl::Status status = context_->disk.WriteManifest(pending->manifest);
    TRIBUTARY_TRACE(context_->world, "checkpoint of step ", step, ": ",
                    status.ToString());
    if (!control_->output().ManifestWritten(*pending, folder, status)) {
      context_->disk.Revoke(folder);
    } else if (status.ok()) {
      const absl::StatusOr<WholeState> whole = context_->disk.Read(
          folder, context_->model.parameters(),
          static_cast<size_t>(pending->manifest.state_names_size()));
      if (whole.ok()) {
        context_->oracle.Checkpoint(*whole);
      } else {
        context_->world.Violate(
            absl::StrCat("a checkpoint that is complete cannot be read: ",
                         std::string(whole.status().message())));
      }
      context_->disk.Prune(2);
    }
    TakeUpdates();
    WriteManifests();
  });
}

void SimulatedCoordinator::SaveWhenFinished() {
  v1::Plan plan;
  int64_t step = 0;
  if (!control_->output().ReadyToSave(&plan, &step))
    return NextRound(kRoundPause);
  const int64_t now = context_->world.now();
  if (ending_epoch_ != plan.epoch()) {
    ending_epoch_ = plan.epoch();
    ending_since_ = now;
  }
  if (control_->output().CheckpointOpen() &&
      now < ending_since_ + kLastCheckpoint) {
    return NextRound(kLook);
  }
  auto read = std::make_shared<FinalRead>();
  read->plan = plan;
  read->step = step;
  read->version = StepCountOf(JobOf(context_->scenario)).VersionAfter(step);
  read->until = now + kReadTimeout;
  read->weights = context_->model.Initial();  // for the shapes
  const PartitionPlan cut = context_->model.Cut(plan.servers_size());
  for (int shard = 0; shard < cut.num_shards(); ++shard) {
    for (const Block& block : cut.blocks(shard)) read->blocks.push_back(block);
  }
  ReadBlock(std::move(read), 0);
}

void SimulatedCoordinator::ReadBlock(std::shared_ptr<FinalRead> read,
                                     size_t index) {
  if (index == read->blocks.size()) {
    context_->oracle.Final(read->step, read->weights);
    saved_step_ = read->step;
    saved_epoch_ = read->plan.epoch();
    return Saved(*read, absl::OkStatus());
  }
  const Block& block = read->blocks[index];
  PullCall pull;
  pull.address = AddressOf(read->plan, block.shard, block.index);
  pull.version = read->version;
  pull.wait_micros = kHold;
  context_->network.Call(
      this, read->plan.servers(block.shard), "final pull", World::Kind::kWork,
      2 * kHold, &SimulatedServer::Pull, pull,
      [this, read, index](absl::StatusOr<WeightsSnapshot> weights) {
        const absl::Status& status = weights.status();
        const int64_t now = context_->world.now();
        const bool again =
            absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
        const bool in_force = control_->output().InForce(read->plan.epoch());
        if (again && in_force && now < read->until) {
          return Idle(kPause, [this, read, index] { ReadBlock(read, index); });
        }
        if (!status.ok()) return Saved(*read, status);
        if (weights->version != read->version) {
          return Saved(*read, absl::InternalError(absl::StrCat(
                                  "a block has version ", weights->version,
                                  ", wanted ", read->version)));
        }
        std::vector<float*> tensors;
        for (std::vector<float>& tensor : read->weights) {
          tensors.push_back(tensor.data());
        }
        PartitionPlan::Scatter(read->blocks[index], weights->weights.data(),
                               absl::MakeConstSpan(tensors));
        ReadBlock(read, index + 1);
      });
}

void SimulatedCoordinator::Saved(const FinalRead& read,
                                 const absl::Status& status) {
  control_->output().Saved(read.plan.epoch(), status);
  TakeUpdates();
  NextRound(kRoundPause);
}

}  // namespace tributary::simulation
