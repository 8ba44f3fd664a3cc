#include "tests/simulation/processes/simulated_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/member/report_checkpoint.h"
#include "server/sync/sync_policy.h"
#include "tests/simulation/processes/serving.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// As in ParameterServer and RunServer.
constexpr int64_t kTick = 100 * kMilli;

std::unique_ptr<SyncPolicy> PolicyOf(const Scenario& scenario) {
  switch (scenario.sync) {
    case Scenario::Sync::kStale:
      return std::make_unique<StaleSynchronous>(scenario.staleness,
                                                scenario.checkpoint_every);
    case Scenario::Sync::kAsync:
      return std::make_unique<Asynchronous>(scenario.checkpoint_every);
    default:
      return std::make_unique<BulkSynchronous>(scenario.backup_workers);
  }
}

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

// A Checkpointer whose thread is the world's events.
struct SimulatedServer::FileWriter {
  ShardFileSeries series;
  SnapshotCollector collector;
  bool writing = false;
  bool closing = false;
  std::function<void()> on_closed;
};

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
                     if (!status.ok()) return Exit(status);
                     index_ = member_.index();
                     AwaitPlan();
                   },
               .on_news = [this] { OnNews(); }}) {}

SimulatedServer::~SimulatedServer() = default;

void SimulatedServer::Start() {
  context_->network.Listen(options_.address, this);
  member_.Join();
  ExpireNow();
}

void SimulatedServer::LetGo() {
  member_.Leave();
  writer_.reset();
  if (serving_) serving_->store.reset();
  serving_.reset();
}

void SimulatedServer::After(int64_t micros, World::Kind kind,
                            std::function<void()> then) {
  context_->world.After(micros, this, kind, std::move(then));
}

void SimulatedServer::Exit(const absl::Status& status) {
  context_->on_exit(this, status);
}

void SimulatedServer::Fail(const absl::Status& status) {
  member_.Fail(status, [this, status] { Exit(status); });
}

uint64_t SimulatedServer::serving_epoch() const {
  return serving_ ? serving_->plan.epoch() : 0;
}

std::string SimulatedServer::Held() const {
  if (!serving_) return "";
  const ParameterShard& store = *serving_->store;
  if (store.held_bytes() == 0 && store.waiting_calls() == 0) return "";
  return absl::StrCat(name(), " holds ", store.held_bytes(), " bytes and ",
                      store.waiting_calls(), " calls");
}

void SimulatedServer::ExpireNow() {
  After(kTick, World::Kind::kIdle, [this] {
    if (serving_) serving_->store->ExpireWaiters(context_->world.now());
    ExpireNow();
  });
}

// ---- plans

void SimulatedServer::AwaitPlan() {
  waits_for_plan_ = true;
  member_.GetPlan(epoch_ + 1, [this](absl::StatusOr<v1::Plan> p) {
    if (!p.ok()) {
      return member_.state().end().ok() ? Fail(p.status())
                                        : Exit(member_.state().end());
    }
    epoch_ = p->epoch();
    const v1::Plan plan = *std::move(p);
    if (writer_ && writer_->writing) {
      writer_->closing = true;
      writer_->on_closed = [this, plan] { Prepare(plan); };
    } else {
      Prepare(plan);
    }
  });
}

void SimulatedServer::OnNews() {
  const MemberState& state = member_.state();
  if (!state.end().ok()) return Exit(state.end());
  if (state.phase() == v1::JOB_PHASE_DONE) return Exit(absl::OkStatus());
  if (!waits_for_plan_ && state.newest_plan() > epoch_) AwaitPlan();
}

void SimulatedServer::Prepare(const v1::Plan& plan) {
  if (writer_) writer_->closing = true;
  writer_.reset();
  std::optional<WholeState> restored;
  if (!plan.restore_from().empty()) {
    absl::StatusOr<WholeState> whole = context_->disk.Read(
        plan.restore_from(), context_->model.parameters(),
        Optimizer(context_->scenario.optimizer).state_names().size());
    if (!whole.ok()) {  // the next plan starts from another checkpoint
      if (!context_->disk.damaged()) {
        return context_->world.Violate(absl::StrCat(
            "a checkpoint that nobody has damaged cannot be read: ",
            std::string(whole.status().message())));
      }
      waits_for_plan_ = false;
      Report(UnreadableReport(whole.status(), plan));
      return OnNews();
    }
    context_->oracle.Checkpoint(*whole);
    restored = *std::move(whole);
  }
  if (serving_) Retire(std::exchange(serving_, nullptr));
  After(context_->world.random().Scale(kMilli, 30 * kMilli), World::Kind::kWork,
        [this, plan, restored] { Serve(plan, restored); });
}

ParameterShard::Options SimulatedServer::ShardOptions(
    const ServingPtr& serving) {
  const Scenario& scenario = context_->scenario;
  Serving* raw = serving.get();
  ParameterShard::Options options;
  options.plan = &serving->cut;
  options.shard = serving->shard;
  options.num_workers = scenario.workers;
  options.optimizer = scenario.optimizer;
  options.learning_rate = [model = &context_->model](int64_t step) {
    return model->LearningRate(step);
  };
  options.clip_norm = scenario.clip_norm;
  options.policy = PolicyOf(scenario);
  options.ops = &context_->ops;
  options.keep_previous = options.policy->gathers() &&
                          !options.policy->drops_late() &&
                          scenario.on_worker_loss != v1::WORKER_LOSS_FAIL;
  if (scenario.skip_nonfinite) options.nonfinite = NonFiniteAction::kSkip;
  options.on_fatal = [this](const std::string& why) {
    context_->world.Violate(why);
  };
  const size_t blocks = serving->cut.blocks(serving->shard).size();
  if (scenario.checkpoint_every > 0 && blocks > 0) {
    writer_ = std::make_shared<FileWriter>(
        FileWriter{SeriesOf(serving->plan, serving->cut, serving->shard,
                            Optimizer(scenario.optimizer).state_names()),
                   SnapshotCollector(blocks)});
    options.checkpoint_every_steps = scenario.checkpoint_every;
    options.on_checkpoint = [this, keep = writer_](const BlockCut& cut) {
      context_->oracle.Cut(cut);
      if (keep->closing) return;
      keep->collector.Add(cut.steps, BlockSnapshot(cut), /*pause_micros=*/0);
      WriteNext(keep);
    };
  }
  options.fetch_statistics = [this, raw](int64_t step, StatisticsKind kind) {
    if (serving_.get() != raw) return;
    for (int s = 0; s < raw->cut.num_shards(); ++s) {
      if (s != raw->shard && raw->cut.shard_elements(s) > 0) {
        Fetch(serving_, step, kind, s);
      }
    }
  };
  return options;
}

void SimulatedServer::Serve(const v1::Plan& plan,
                            std::optional<WholeState> restored) {
  const auto shard = static_cast<int>(member_.index());
  auto serving = std::make_shared<Serving>(
      plan, context_->model.Cut(plan.servers_size()), shard);
  serving->store = std::make_unique<ParameterShard>(ShardOptions(serving));
  if (restored) {
    const absl::Status status = serving->store->Restore(
        plan.start_step(), [&](const Block& block, float* weights,
                               const std::vector<float*>& state) {
          for (const Slice& slice : block.slices) {
            std::copy_n(
                restored->weights[slice.parameter].begin() + slice.begin,
                slice.size(), weights + slice.offset);
            for (size_t i = 0; i < state.size(); ++i) {
              std::copy_n(
                  restored->state[i][slice.parameter].begin() + slice.begin,
                  slice.size(), state[i] + slice.offset);
            }
          }
          return absl::OkStatus();
        });
    if (!status.ok()) return Fail(status);
  }
  testing::ContributionLedger::Options ledger;
  ledger.workers = context_->scenario.workers;
  ledger.steps = plan.start_step();
  ledger.may_skip = context_->scenario.backup_workers > 0;
  for (size_t b = 0; b < serving->cut.blocks(shard).size(); ++b) {
    serving->ledgers.emplace_back(ledger);
  }
  serving_ = std::move(serving);
  TRIBUTARY_TRACE(context_->world, name(), " serves shard ", shard,
                  " of plan epoch ", plan.epoch(), " after step ",
                  plan.start_step());
  waits_for_plan_ = false;
  OnNews();
}

void SimulatedServer::Retire(ServingPtr serving) {
  serving->store->ExpireWaiters(INT64_MAX);
  if (serving->store->waiting_calls() > 0) {
    context_->world.Violate("calls wait in a plan that is over");
  }
  serving->store.reset();
}

// ---- checkpoints

void SimulatedServer::WriteNext(const std::shared_ptr<FileWriter>& writer) {
  if (writer->writing || writer->closing || !writer->collector.due()) return;
  writer->writing = true;
  // A crash before this leaves no file.
  After(context_->world.random().Scale(kMilli, 100 * kMilli),
        World::Kind::kIdle, [this, writer, work = writer->collector.Take()] {
          writer->writing = false;
          const ShardSnapshot& snapshot = work.snapshot;
          Report(*writer,
                 {.step = snapshot.step,
                  .file = context_->disk.WriteShard(writer->series, snapshot)});
          for (const WrittenSnapshot& failed : work.failed) {
            Report(*writer, failed);
          }
          if (!writer->closing) return WriteNext(writer);
          if (writer->on_closed) writer->on_closed();
        });
}

void SimulatedServer::Report(const FileWriter& writer,
                             const WrittenSnapshot& written) {
  Report(
      ReportOf(written, writer.series.state_names, writer.series.plan_epoch));
}

void SimulatedServer::Report(const v1::CheckpointReport& report) {
  member_.state().ReportCheckpoint(report);
  member_.Nudge();
}

}  // namespace tributary::simulation
