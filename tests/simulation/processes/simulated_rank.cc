#include "tests/simulation/processes/simulated_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// As in ParameterClient, RunWorker and Member.
constexpr int64_t kStepTimeout = 120 * kSecond;
constexpr int64_t kClockTimeout = 2 * kSecond;
constexpr int64_t kClockPause = 20 * kMilli;
constexpr int64_t kNewsAnswers = 2;

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

}  // namespace

SimulatedRank::SimulatedRank(Context* context, Process* process,
                             Options options)
    : context_(context),
      process_(process),
      options_(std::move(options)),
      member_({.world = &context->world,
               .network = &context->network,
               .process = process,
               .registration = Registration(options_, *process),
               .on_joined = [this](const absl::Status& s) { Joined(s); },
               .on_news = [this] { OnNews(); }}),
      round_(context, process) {}

void SimulatedRank::Start() { member_.Join(); }

void SimulatedRank::LetGo() {
  ended_ = true;
  member_.Leave();
  round_.Begin(0);
}

void SimulatedRank::After(int64_t micros, World::Kind kind,
                          std::function<void()> then) {
  context_->world.After(micros, process_, kind,
                        [this, mine = timer_, then = std::move(then)] {
                          if (!ended_ && mine == timer_) then();
                        });
}

void SimulatedRank::SetPhase(Phase phase) {
  phase_ = phase;
  ++timer_;
}

void SimulatedRank::End(const absl::Status& status) {
  if (ended_) return;
  LetGo();
  options_.on_end(status);
}

// ---- before training

void SimulatedRank::Joined(const absl::Status& status) {
  if (!status.ok()) return End(status);
  rank_ = member_.index();
  SetPhase(Phase::kDeclaring);
  v1::DeclareModelRequest declaration;
  ToProto(context_->model.parameters(), declaration.mutable_parameters());
  declaration.set_total_steps(context_->scenario.steps);
  declaration.set_steps_per_epoch(context_->scenario.steps);
  member_.DeclareModel(
      declaration, [this](const absl::StatusOr<v1::DeclareModelResponse>& s) {
        if (ended_) return;
        if (!s.ok()) return PlanFailed(s.status());
        AwaitPlan();
      });
}

void SimulatedRank::AwaitPlan() {
  SetPhase(Phase::kWaitingForPlan);
  member_.GetPlan(epoch_ + 1, [this](absl::StatusOr<v1::Plan> p) {
    if (ended_) return;
    if (!p.ok()) {
      const absl::Status& end = member_.state().end();
      if (!end.ok()) return End(end);
      member_.Fail(p.status(), [this, s = p.status()] { End(s); });
      return;
    }
    BeginPlan(*p);
  });
}

void SimulatedRank::BeginPlan(const v1::Plan& plan) {
  plan_ = plan;
  epoch_ = plan.epoch();
  cut_ = context_->model.Cut(plan.servers_size());
  weights_ = gradient_ = context_->model.Initial();
  versions_.clear();
  initialized_ = true;
  clock_steps_ = INT64_MAX;
  clock_begun_ = 0;
  clock_deadline_ = context_->world.now() + kStepTimeout;
  round_.Begin(kStepTimeout);
  SetPhase(Phase::kReadingClock);
  ReadClock(0);
}

void SimulatedRank::ForEachBlock(
    const std::function<void(const Block&)>& visit) const {
  for (int shard = 0; shard < cut_->num_shards(); ++shard) {
    for (const Block& block : cut_->blocks(shard)) visit(block);
  }
}

void SimulatedRank::ReadClock(int shard) {
  while (shard < cut_->num_shards() && cut_->blocks(shard).empty()) ++shard;
  if (shard == cut_->num_shards()) return ClockKnown();
  clock_calling_ = true;
  context_->network.Call<ParameterShard::Clock>(
      process_, plan_.servers(shard), "read clock", World::Kind::kWork,
      kClockTimeout,
      [address = AddressOf(plan_, shard, 0), rank = *rank_,
       incarnation = member_.incarnation(), recomputes = member_.recomputes()](
          Process& server, Reply<ParameterShard::Clock> r) {
        static_cast<SimulatedServer&>(server).ReadClock(
            address, rank, incarnation, recomputes, std::move(r));
      },
      [this, shard, mine = timer_](absl::StatusOr<ParameterShard::Clock> part) {
        if (ended_ || OfAnotherPhase(mine)) return;
        clock_calling_ = false;
        if (part.ok()) {
          initialized_ &= part->initialized;
          clock_steps_ = std::min(clock_steps_, part->steps);
          clock_begun_ = std::max(clock_begun_, part->begun);
          return ReadClock(shard + 1);
        }
        const bool may_pass = absl::IsUnavailable(part.status()) ||
                              absl::IsDeadlineExceeded(part.status());
        if (!may_pass || context_->world.now() >= clock_deadline_) {
          return PlanFailed(part.status());
        }
        After(kClockPause, World::Kind::kWork,
              [this, shard] { ReadClock(shard); });
      });
}

void SimulatedRank::ClockKnown() {
  if (context_->scenario.sync != Scenario::Sync::kBackup) {
    member_.state().StartAt(epoch_, clock_steps_, clock_begun_);
  }
  if (initialized_ || *rank_ != 0) return PullStart();
  SetPhase(Phase::kInitializing);
  round_.Begin(kStepTimeout);
  const Tensors initial = context_->model.Initial();
  ForEachBlock([&](const Block& block) {
    std::vector<float> values(block.size);
    std::vector<const float*> tensors;
    for (const std::vector<float>& t : initial) tensors.push_back(t.data());
    PartitionPlan::Gather(block, tensors, values.data());
    round_.Add(0, [this, address = AddressOf(plan_, block.shard, block.index),
                   values](int64_t /*hold*/, int64_t timeout,
                           std::function<void(absl::Status)> done) {
      context_->network.Call<Nothing>(
          process_, plan_.servers(static_cast<int>(address.shard())),
          "initialize", World::Kind::kWork, timeout,
          [address, values](Process& server, Reply<Nothing> reply) {
            static_cast<SimulatedServer&>(server).Initialize(address, values,
                                                             std::move(reply));
          },
          [done](const absl::StatusOr<Nothing>& answer) {
            done(answer.status());
          });
    });
  });
  round_.Wait([this](const absl::Status& status) {
    status.ok() ? PullStart() : PlanFailed(status);
  });
}

// Pulls the weights to start from. If some servers have this rank's gradient
// already, it must be computed again with equal bits.
void SimulatedRank::PullStart() {
  SetPhase(Phase::kPulling);
  round_.Begin(kStepTimeout);
  newest_version_ = 0;
  const bool exact = context_->scenario.sync == Scenario::Sync::kBulk;
  const std::optional<Reader> reader =
      context_->scenario.gathers()
          ? std::nullopt
          : std::make_optional(Reader{*rank_, clock_steps_});
  ForEachBlock([&](const Block& block) {
    AddPull(block, exact ? clock_steps_ : 0, exact, reader);
  });
  round_.Wait([this](const absl::Status& status) {
    if (!status.ok()) return PlanFailed(status);
    int64_t step = clock_steps_;
    if (context_->scenario.sync == Scenario::Sync::kBackup) {
      step = OldestVersion();
      member_.state().StartAt(epoch_, step, clock_begun_);
    }
    StartKnown(step);
  });
}

void SimulatedRank::StartKnown(int64_t step) {
  step_ = step;
  TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ", *rank_,
                  ", goes on after step ", step, " of plan epoch ", epoch_);
  NextStep();
}

// ---- training

void SimulatedRank::NextStep() {
  SetPhase(Phase::kAtGate);
  if (step_ >= context_->scenario.steps) return Finish();
  switch (member_.state().Check(step_ + 1)) {
    case MemberState::Gate::kOpen:
      member_.state().Begin(step_ + 1);
      return Compute();
    case MemberState::Gate::kStop:
      return Finish();
    case MemberState::Gate::kNewPlan:
      return PlanFailed(absl::FailedPreconditionError("a new plan is there"));
    case MemberState::Gate::kEnded:
      return PlanFailed(member_.state().end());
    case MemberState::Gate::kWait:
      member_.Nudge();
  }
}

void SimulatedRank::Compute() {
  SetPhase(Phase::kComputing);
  context_->model.Gradient(*rank_, step_, weights_, &gradient_);
  const int64_t mean = context_->scenario.compute_micros[*rank_];
  After(context_->world.random().Between(mean / 2, mean * 3 / 2),
        World::Kind::kWork, [this] { Push(); });
}

void SimulatedRank::Push() {
  SetPhase(Phase::kPushing);
  round_.Begin(kStepTimeout);
  newest_version_ = 0;
  ForEachBlock([this](const Block& block) { AddPush(block); });
  round_.Wait([this](const absl::Status& status) {
    status.ok() ? FinishStep() : PlanFailed(status);
  });
}

void SimulatedRank::FinishStep() {
  const bool backup = context_->scenario.sync == Scenario::Sync::kBackup;
  if (!backup || newest_version_ <= step_ + 1) return Report(step_ + 1);
  // The other ranks have gone on: pull all weights and continue at their step.
  const int64_t newest = newest_version_;
  SetPhase(Phase::kCatchingUp);
  round_.Begin(kStepTimeout);
  newest_version_ = 0;
  ForEachBlock([&](const Block& block) {
    AddPull(block, newest, /*exact=*/false, std::nullopt);
  });
  round_.Wait([this](const absl::Status& status) {
    status.ok() ? Report(OldestVersion()) : PlanFailed(status);
  });
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
  NextStep();
}

void SimulatedRank::Finish() {
  SetPhase(Phase::kFinishing);
  member_.state().Finish();
  member_.Nudge();
}

// ---- news and ends

void SimulatedRank::OnNews() {
  if (ended_) return;
  const MemberState& state = member_.state();
  if (!state.end().ok()) {
    if (phase_ == Phase::kEnding) return;
    return PlanFailed(state.end());
  }
  for (uint32_t rank : state.adopt_ranks()) {
    SimulatedRank*& adopted = adopted_[rank];
    if (adopted == nullptr || adopted->ended()) {
      adopted = options_.on_adopt(rank);
    }
  }
  const bool done = state.phase() == v1::JOB_PHASE_DONE;
  const bool newer = epoch_ > 0 && state.newest_plan() > epoch_;
  switch (phase_) {
    case Phase::kJoining:
    case Phase::kDeclaring:
    case Phase::kWaitingForPlan:
    case Phase::kEnding:
      return;
    case Phase::kAtGate:
      if (state.Check(step_ + 1) != MemberState::Gate::kWait) return NextStep();
      return member_.Nudge();
    case Phase::kFinishing:
      if (newer) {
        return PlanFailed(absl::FailedPreconditionError("a new plan is there"));
      }
      if (!done && !state.finish_acknowledged()) return member_.Nudge();
      SetPhase(Phase::kWaitingForDone);
      [[fallthrough]];
    case Phase::kWaitingForDone:
      if (done) return End(absl::OkStatus());
      if (newer) AwaitPlan();
      return;
    case Phase::kWaitingForNews:
      if (newer) return AwaitPlan();
      if (done || NothingIsAwaited()) NoNews();
      return;
    default:
      if (!newer && !done) return;
      round_.Cancel("there is a new plan, or the job is done");
      if (phase_ == Phase::kReadingClock || phase_ == Phase::kComputing) {
        PlanFailed(absl::CancelledError("a new plan, or the job is done"));
      }
  }
}

void SimulatedRank::PlanFailed(const absl::Status& status) {
  TRIBUTARY_TRACE(context_->world, process_->name(), ", rank ", *rank_, ", ",
                  Doing(), " in plan epoch ", epoch_, ": ", status.ToString());
  const MemberState& state = member_.state();
  failure_ = status;
  SetPhase(Phase::kWaitingForNews);
  if (!state.end().ok() || state.phase() == v1::JOB_PHASE_DONE) return NoNews();
  if (epoch_ > 0 && state.newest_plan() > epoch_) return AwaitPlan();
  const bool lost = absl::IsCancelled(status) || absl::IsUnavailable(status);
  const bool may_be = lost || absl::IsFailedPrecondition(status) ||
                      absl::IsDeadlineExceeded(status);
  if (epoch_ == 0 || !may_be) return NoNews();
  patience_ = lost ? 2 * context_->scenario.lease_ms * kMilli : 0;
  quiet_since_ = context_->world.now();
  quiet_answers_ = state.answers();
}

// As Member::WaitForNews.
bool SimulatedRank::NothingIsAwaited() {
  const MemberState& state = member_.state();
  const int64_t now = context_->world.now();
  if (!state.waits_for().empty()) {
    quiet_since_ = now;
    quiet_answers_ = state.answers();
  }
  return state.answers() - quiet_answers_ >= kNewsAnswers &&
         now - quiet_since_ >= patience_;
}

void SimulatedRank::NoNews() {
  SetPhase(Phase::kEnding);
  if (!member_.state().end().ok()) return End(member_.state().end());
  member_.Fail(failure_, [this] { End(failure_); });
}

bool SimulatedRank::WaitsForServers() const {
  switch (phase_) {
    case Phase::kReadingClock:
      return clock_calling_;
    case Phase::kInitializing:
    case Phase::kPulling:
    case Phase::kPushing:
    case Phase::kCatchingUp:
      return round_.waits();
    default:
      return false;
  }
}

std::string SimulatedRank::Doing() const {
  constexpr const char* kNames[] = {"joins",
                                    "declares the model",
                                    "waits for a plan",
                                    "reads clocks",
                                    "gives first weights",
                                    "pulls",
                                    "at the gate",
                                    "computes",
                                    "pushes",
                                    "catches up",
                                    "finishes",
                                    "waits for the end",
                                    "waits for news",
                                    "ends"};
  return absl::StrCat(kNames[static_cast<int>(phase_)], ", step ", step_ + 1);
}

}  // namespace tributary::simulation
