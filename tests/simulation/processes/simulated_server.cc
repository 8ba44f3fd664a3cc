// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/restore.h"
#include "common/member/report_checkpoint.h"
#include "server/service/make_training.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

using Next = ServingLife::Next;

// As in ParameterServer.
constexpr int64_t kTick = 100 * kMilli;

v1::RegisterRequest Registration(const SimulatedServer::Options& options,
                                 int64_t pid, const std::string& name) {
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_instance(absl::StrCat(name, "-", pid));
  request.set_host(name);
  request.set_pid(pid);
  request.set_address(options.address);
  if (options.wanted_index) request.set_wanted_index(*options.wanted_index);
  return request;
}

}  // namespace

SimulatedServer::SimulatedServer(int64_t pid, std::string name,
                                 Context* context, Options options)
    : Process(pid, std::move(name)),
      context_(context),
      options_(std::move(options)),
      member_({.world = &context->world,
               .network = &context->network,
               .process = this,
               .registration = Registration(options_, pid, this->name()),
               .on_joined =
                   [this](const absl::Status& status) {
                     if (!status.ok()) {
                       return context_->on_exit(this, status);
                     }
                     index_ = member_.index();
                     Proceed();
                   },
               .on_news = [this] { OnNews(); }}) {}

SimulatedServer::~SimulatedServer() = default;

void SimulatedServer::Start() {
  context_->network.Listen(options_.address, this);
  member_.Join();
  Tick();
}

void SimulatedServer::LetGo() {
  member_.Leave();
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

// ---- plans

void SimulatedServer::Proceed() {
  switch (life_.next()) {
    case Next::kGetPlan:
      return member_.GetPlan(life_.wanted_epoch(),
                             [this](absl::StatusOr<v1::Plan> plan) {
                               life_.OnPlan(std::move(plan));
                               Proceed();
                             });
    case Next::kStart:
      return CloseCheckpointer();
    case Next::kServe:
      member_.state().StartAt(life_.plan().epoch(), life_.plan().start_step());
      return OnNews();
    case Next::kReportUnreadable:
      Report(UnreadableReport(life_.status(), life_.plan()));
      return OnNews();
    case Next::kEnd:
      return End(life_.status());
  }
}

void SimulatedServer::OnNews() {
  const Next before = life_.next();
  if (before != Next::kServe && before != Next::kReportUnreadable) return;
  life_.OnNews(member_.state().NewsAfter(life_.plan().epoch()));
  if (life_.next() != before) return Proceed();
  if (before == Next::kServe) Cut();
}

void SimulatedServer::Cut() {
  const int64_t step = member_.state().cut_step();
  if (step == 0 || step == last_cut_ || !serving_) return;
  last_cut_ = step;
  const absl::Status cut = serving_->served().store().CutAll(step);
  if (!cut.ok()) {
    context_->world.Violate(absl::StrCat(
        name(), " has no snapshot of the last step: ", cut.message()));
  }
  member_.state().ReportCut(step);
}

void SimulatedServer::End(const absl::Status& status) {
  if (status.ok() || !member_.state().end().ok()) {
    return context_->on_exit(this, status);
  }
  member_.Fail(status, [this, status] { context_->on_exit(this, status); });
}

void SimulatedServer::CloseCheckpointer() {
  if (!checkpointer_) return Prepare();
  checkpointer_->Finish([this] { Prepare(); });
}

void SimulatedServer::Prepare() {
  const v1::Plan& plan = life_.plan();
  checkpointer_.reset();
  std::optional<WholeState> restored;
  const auto shard = static_cast<int>(member_.index());
  if (shard >= plan.servers_size()) {
    return context_->world.Violate(absl::StrCat(
        name(), " has a plan for ", plan.servers_size(), " servers"));
  }
  const bool has_blocks =
      !context_->model.Cut(plan.servers_size()).blocks(shard).empty();
  if (!plan.restore_from().empty() && has_blocks) {
    absl::StatusOr<WholeState> whole = context_->disk.Read(
        plan.restore_from(), context_->model.parameters(),
        Optimizer(context_->scenario.optimizer).state_names().size());
    if (!whole.ok()) {  // the next plan starts from another checkpoint
      if (!context_->disk.damaged()) {
        return context_->world.Violate(absl::StrCat(
            "a checkpoint that nobody has damaged cannot be read: ",
            std::string(whole.status().message())));
      }
      life_.OnStarted(Unreadable(whole.status()));
      return Proceed();
    }
    context_->oracle.Checkpoint(*whole);
    restored = *std::move(whole);
  }
  if (const auto ended = std::exchange(serving_, nullptr)) {
    ended->served().End();
    if (ended->served().store().waiting_calls() > 0) {
      context_->world.Violate("calls wait in a plan that is over");
    }
  }
  After(context_->world.random().Scale(kMilli, 30 * kMilli), World::Kind::kWork,
        [this, restored] { Serve(restored); });
}

ShardSetup SimulatedServer::MakeSetup(const PartitionPlan& partition) {
  const Scenario& scenario = context_->scenario;
  absl::StatusOr<ShardTraining> training =
      MakeTraining(JobOf(scenario), life_.plan().total_steps());
  TRIBUTARY_CHECK(training.ok());
  ShardSetup setup;
  setup.shard = static_cast<int>(member_.index());
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
      SeriesOf(life_.plan(), partition, setup.shard,
               Optimizer(scenario.optimizer).state_names()),
      partition.blocks(setup.shard).size(),
      [this](const v1::CheckpointReport& report) { Report(report); });
  setup.on_checkpoint = [this, keep = checkpointer_](const BlockCut& cut) {
    context_->oracle.Cut(cut);
    keep->Take(cut);
  };
  return setup;
}

void SimulatedServer::Serve(const std::optional<WholeState>& restored) {
  const v1::Plan& plan = life_.plan();
  PartitionPlan partition = context_->model.Cut(plan.servers_size());
  ShardSetup setup = MakeSetup(partition);
  auto serving = std::make_shared<CheckedPlan>(
      context_, plan, std::move(partition), std::move(setup),
      [this](const v1::StatisticsRequest& request) { Ask(request); });
  if (restored) {
    const absl::Status status = serving->served().store().Restore(
        plan.start_step(), [&restored](const Block& block, float* weights,
                                       const std::vector<float*>& state) {
          restored->CopyOut(block, weights, state);
          return absl::OkStatus();
        });
    if (!status.ok()) return End(status);
  }
  serving_ = std::move(serving);
  serving_->CallAsFormerHolders();
  last_cut_ = 0;
  TRIBUTARY_TRACE(context_->world, name(), " serves shard ", member_.index(),
                  " of plan epoch ", plan.epoch(), " after step ",
                  plan.start_step());
  life_.OnStarted(absl::OkStatus());
  Proceed();
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
      this, life_.plan().servers(static_cast<int>(request.shard())),
      "statistics", World::Kind::kWork,
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
  member_.state().ReportCheckpoint(report);
  member_.Nudge();
}

}  // namespace tributary::simulation
