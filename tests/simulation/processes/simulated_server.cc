// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_server.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/restore.h"
#include "common/status/status_macros.h"
#include "server/service/make_training.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// As in ParameterServer.
constexpr int64_t kTick = 100 * kMilli;

}  // namespace

SimulatedServer::SimulatedServer(int64_t pid, std::string name,
                                 Context* context, Options options)
    : Process(pid, std::move(name)),
      context_(context),
      options_(std::move(options)),
      host_(context, this) {}

SimulatedServer::~SimulatedServer() = default;

void SimulatedServer::Start() {
  context_->network.Listen(options_.address, this);
  context_->fibers.Start(this, [this] { context_->on_exit(this, Live()); });
  Tick();
}

void SimulatedServer::LetGo() {
  context_->fibers.Kill(this);
  checkpointer_.reset();
  serving_.reset();
}

void SimulatedServer::After(int64_t micros, World::Kind kind,
                            std::function<void()> then) {
  context_->world.After(micros, this, kind, std::move(then));
}

uint64_t SimulatedServer::serving_epoch() const {
  return serving_ ? serving_->served().plan().epoch() : 0;
}

std::string SimulatedServer::Held(bool calls_count) const {
  if (!serving_) return "";
  const ParameterShard& store = std::as_const(*serving_).served().store();
  if (store.held_bytes() == 0 && (!calls_count || store.waiting_calls() == 0)) {
    return "";
  }
  return absl::StrCat(name(), " holds ", store.held_bytes(), " bytes and ",
                      store.waiting_calls(), " calls");
}

void SimulatedServer::Tick() {
  After(kTick, World::Kind::kIdle, [this] {
    if (serving_) serving_->served().Tick(context_->world.now());
    Tick();
  });
}

absl::StatusOr<std::unique_ptr<Member>> SimulatedServer::Join() {
  MemberOptions options = host_.Options(v1::ROLE_SERVER);
  options.address = options_.address;
  options.wanted_index = options_.wanted_index;
  return Member::Join(std::move(options));
}

absl::Status SimulatedServer::Live() {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Member> member, Join());
  const absl::Cleanup gone = [this] { member_ = nullptr; };
  member_ = member.get();
  index_ = member->index();
  TRIBUTARY_TRACE(context_->world, name(), " (pid ", pid(), ") has place ",
                  *index_, " as incarnation ", member->incarnation());
  const absl::Status status = ServeUntilEnd(*member, *this);
  CloseCheckpointer();
  return status;
}

// ---- plans

absl::Status SimulatedServer::CutAll(int64_t step) {
  const absl::Status cut = serving_->served().store().CutAll(step);
  if (!cut.ok()) {
    context_->world.Violate(absl::StrCat(
        name(), " has no snapshot of the last step: ", cut.message()));
  }
  return cut;
}

void SimulatedServer::CloseCheckpointer() {
  if (!checkpointer_) return;
  const auto finished = std::make_shared<bool>(false);
  checkpointer_->Finish([finished] { *finished = true; });
  context_->fibers.Await([&finished] { return *finished; });
  checkpointer_.reset();
}

absl::StatusOr<std::optional<WholeState>> SimulatedServer::Restored(
    const v1::Plan& plan) {
  const PartitionPlan partition = context_->model.Cut(plan.servers_size());
  if (plan.restore_from().empty() ||
      partition.blocks(static_cast<int>(*index_)).empty()) {
    return std::nullopt;
  }
  absl::StatusOr<WholeState> whole = context_->disk.Read(
      plan.restore_from(), context_->model.parameters(),
      Optimizer(context_->scenario.optimizer).state_names().size());
  if (!whole.ok()) {  // the next plan starts from another checkpoint
    if (!context_->disk.damaged()) {
      context_->world.Violate(
          absl::StrCat("a checkpoint that nobody has damaged cannot be read: ",
                       std::string(whole.status().message())));
    }
    return Unreadable(whole.status());
  }
  context_->oracle.Checkpoint(*whole);
  return *std::move(whole);
}

void SimulatedServer::EndPlan() {
  const auto ended = std::exchange(serving_, nullptr);
  if (!ended) return;
  ended->served().End();
  if (ended->served().store().waiting_calls() > 0) {
    context_->world.Violate("calls wait in a plan that is over");
  }
}

absl::Status SimulatedServer::Start(const v1::Plan& plan) {
  plan_ = plan;
  CloseCheckpointer();
  if (static_cast<int>(*index_) >= plan.servers_size()) {
    context_->world.Violate(absl::StrCat(name(), " has a plan for ",
                                         plan.servers_size(), " servers"));
    return absl::InternalError("no shard");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::optional<WholeState> restored,
                             Restored(plan));
  EndPlan();
  context_->fibers.Sleep(context_->world.random().Scale(kMilli, 30 * kMilli),
                         World::Kind::kWork);
  PartitionPlan partition = context_->model.Cut(plan.servers_size());
  ShardSetup setup = MakeSetup(plan, partition);
  auto serving = std::make_shared<CheckedPlan>(
      context_, plan, std::move(partition), std::move(setup),
      [this](const v1::StatisticsRequest& request) { Ask(request); });
  if (restored) {
    TRIBUTARY_RETURN_IF_ERROR(serving->served().store().Restore(
        plan.start_step(), [&restored](const Block& block, float* weights,
                                       const std::vector<float*>& state) {
          restored->CopyOut(block, weights, state);
          return absl::OkStatus();
        }));
  }
  serving_ = std::move(serving);
  serving_->CallAsFormerHolders();
  TRIBUTARY_TRACE(context_->world, name(), " serves shard ", *index_,
                  " of plan epoch ", plan.epoch(), " after step ",
                  plan.start_step());
  return absl::OkStatus();
}

ShardSetup SimulatedServer::MakeSetup(const v1::Plan& plan,
                                      const PartitionPlan& partition) {
  const Scenario& scenario = context_->scenario;
  absl::StatusOr<ShardTraining> training =
      MakeTraining(JobOf(scenario), plan.total_steps());
  TRIBUTARY_CHECK(training.ok());
  ShardSetup setup;
  setup.shard = static_cast<int>(*index_);
  setup.training = *std::move(training);
  setup.training.optimizer = scenario.optimizer;
  if (scenario.adds_early) setup.training.summation.group = 1;
  setup.training.learning_rate = [model = &context_->model](int64_t step) {
    return model->LearningRate(step);
  };
  setup.ops = &context_->ops;
  setup.on_fatal = [this](const absl::Status& why) {
    context_->world.Violate(std::string(why.message()));
  };
  checkpointer_ = std::make_shared<SimulatedCheckpointer>(
      context_, this,
      SeriesOf(plan, partition, setup.shard,
               Optimizer(scenario.optimizer).state_names()),
      partition.blocks(setup.shard).size(),
      [this](const v1::CheckpointReport& report) { Report(report); });
  setup.on_checkpoint = [this, keep = checkpointer_](const BlockCut& cut) {
    context_->oracle.Cut(cut);
    keep->Take(cut);
  };
  return setup;
}

// ---- calls

void SimulatedServer::ReadStatistics(const v1::StatisticsRequest& request,
                                     Reply<std::vector<double>> reply) {
  if (const auto serving = Accept(request, reply)) {
    serving->served().ReadStatistics(
        request, context_->world.now() + request.wait_ms() * kMilli,
        std::move(reply));
  }
}

// As PeerStatistics.
void SimulatedServer::Ask(const v1::StatisticsRequest& request) {
  constexpr RetryPolicy kPolicy = kPeerRetryPolicy;
  context_->network.Call(
      this, plan_.servers(static_cast<int>(request.shard())), "statistics",
      World::Kind::kWork,
      absl::ToInt64Microseconds(kPolicy.hold + kPolicy.margin),
      &SimulatedServer::ReadStatistics, request,
      [=, this](absl::StatusOr<std::vector<double>> values) {
        if (serving_epoch() != request.plan_epoch()) return;
        if (values.ok()) {
          const auto serving = serving_;
          serving->AddStatistics(request, *std::move(values));
        } else if (RetryPolicy::Repeatable(values.status())) {
          After(absl::ToInt64Microseconds(kPolicy.longest_pause),
                World::Kind::kWork, [=, this] {
                  if (serving_epoch() == request.plan_epoch()) Ask(request);
                });
        }
      });
}

void SimulatedServer::Report(const v1::CheckpointReport& report) {
  if (member_ != nullptr) member_->ReportCheckpoint(report);
}

}  // namespace tributary::simulation
