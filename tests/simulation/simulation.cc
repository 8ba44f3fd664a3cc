// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// Limits beyond which a job counts as stuck.
constexpr int64_t kMaxEvents = 400'000;
constexpr int64_t kMaxMicros = 900 * kSecond;
// Time for all processes to learn that the job is over.
constexpr int64_t kGoHome = 90 * kSecond;

// Null when there is no process.
template <typename T>
T* Pick(const std::vector<T*>& processes, int target) {
  return processes.empty() ? nullptr : processes[target % processes.size()];
}

class Simulation {
 public:
  Simulation(const Scenario& scenario,
             const std::function<void(const std::string&)>& trace)
      : cluster_(scenario, trace) {}

  Outcome Run();

 private:
  void Inflict(const Mishap& mishap);
  void CutOff(Process* process, const Mishap& mishap);
  void WatchOthers(const Mishap& pause);
  void StartSpare(Mishap::Kind kind, const Process* process);
  void CheckNobodyWaitsInVain();
  void CheckEnd();
  void CheckNothingIsHeld();
  std::string WhoWaits() const;
  // The number of steps that every server has finished.
  int64_t LeastVersion() const;

  Cluster cluster_;
  World& world_ = cluster_.world();
  Network& network_ = cluster_.network();
  bool stop_requested_ = false;
  std::optional<int64_t> over_since_;
};

// ---- mishaps

void Simulation::CutOff(Process* process, const Mishap& mishap) {
  std::vector<Process*> others = {cluster_.coordinator()};
  for (SimulatedServer* server : cluster_.Servers()) {
    if (server != process) others.push_back(server);
  }
  Random& random = world_.random();
  Process* other = others[random.Next() % others.size()];
  const int64_t until = world_.now() + mishap.lasts_micros;
  const int64_t ways = random.Between(0, 2);
  if (ways != 0) network_.Cut(process, other, until);
  if (ways != 1) network_.Cut(other, process, until);
}

// Checks that in a job with backup workers the others go on while one is
// stopped, if nothing else disturbs them.
void Simulation::WatchOthers(const Mishap& pause) {
  const Scenario& scenario = cluster_.scenario();
  const Adversity& network = scenario.adversity;
  const int64_t slowest = *std::max_element(scenario.compute_micros.begin(),
                                            scenario.compute_micros.end());
  const int64_t half = pause.lasts_micros / 2;
  if (scenario.backup_workers == 0 || half < 5 * slowest ||
      network.lose + network.slow + network.damage > 0 ||
      pause.lasts_micros >= scenario.lease_ms * kMilli) {
    return;
  }
  for (const Mishap& other : scenario.mishaps) {
    const bool before =
        other.at_micros + other.lasts_micros + 2 * scenario.lease_ms * kMilli <
        pause.at_micros;
    const bool after = other.at_micros > pause.at_micros + pause.lasts_micros;
    if (other.at_micros != pause.at_micros && !before && !after) return;
  }
  world_.After(half, nullptr, World::Kind::kIdle, [this, half] {
    const int64_t version = LeastVersion();
    const uint64_t epoch = cluster_.coordinator()->PlanEpoch();
    if (version <= 0 || epoch == 0) return;  // the job still begins
    world_.After(half - 1, nullptr, World::Kind::kIdle, [this, version, epoch] {
      if (cluster_.coordinator()->over() ||
          cluster_.coordinator()->PlanEpoch() != epoch ||
          LeastVersion() > version || version >= cluster_.scenario().steps) {
        ++network_.faults()["others went on"];
        return;
      }
      world_.Violate(
          absl::StrCat("while a worker is stopped, no step ends", WhoWaits()));
    });
  });
}

int64_t Simulation::LeastVersion() const {
  int64_t least = INT64_MAX;
  for (const SimulatedServer* server : cluster_.Servers()) {
    least = std::min(least, server->LeastVersion());
  }
  return least;
}

void Simulation::Inflict(const Mishap& mishap) {
  using enum Mishap::Kind;
  if (cluster_.coordinator()->over() || !cluster_.coordinator()->alive())
    return;
  Process* process = nullptr;
  switch (mishap.kind) {
    case kCrashWorker:
    case kPauseWorker:
    case kCutWorker:
      process = Pick(cluster_.Workers(), mishap.target);
      break;
    case kCrashServer:
    case kPauseServer:
    case kCutServer:
      process = Pick(cluster_.Servers(), mishap.target);
      break;
    default:
      process = cluster_.coordinator();
  }
  if (process == nullptr) return;
  ++network_.faults()[NameOf(mishap.kind)];
  TRIBUTARY_TRACE(world_, "MISHAP: ", NameOf(mishap.kind), ": ",
                  process->name(), " (pid ", process->pid(), ")");
  switch (mishap.kind) {
    case kCrashWorker:
    case kCrashServer:
      cluster_.Crash(process, mishap);
      break;
    case kPauseWorker:
      WatchOthers(mishap);
      [[fallthrough]];
    case kPauseServer:
    case kPauseCoordinator:
      process->Pause(world_.now() + mishap.lasts_micros);
      break;
    case kCrashCoordinator:
      cluster_.CrashCoordinator(mishap);
      break;
    case kCutWorker:
    case kCutServer:
      CutOff(process, mishap);
      break;
    case kFullDisk:
      cluster_.disk().set_full(true);
      world_.After(mishap.lasts_micros, nullptr, World::Kind::kIdle,
                   [this] { cluster_.disk().set_full(false); });
      break;
    case kDamagedCheckpoint:
      if (cluster_.disk().NewestStep() > cluster_.start_step() ||
          cluster_.start_step() == 0) {
        cluster_.disk().DamageNewest();
      }
      break;
    case kStop:
      stop_requested_ = true;
      cluster_.coordinator()->control().RequestStop();
      break;
    case kAskCheckpoint:
      // Refused if the job writes no checkpoints or has no plan.
      (void)cluster_.coordinator()->control().calls().TakeCheckpoint(
          v1::TakeCheckpointRequest());
      break;
    case kPowerCut:
      cluster_.PowerCut();
      break;
  }
  if (mishap.spare) StartSpare(mishap.kind, process);
}

// Starts another process for the place of one that is alive but may seem lost.
void Simulation::StartSpare(Mishap::Kind kind, const Process* process) {
  using enum Mishap::Kind;
  const bool is_server = kind == kPauseServer || kind == kCutServer;
  if (!is_server && kind != kPauseWorker && kind != kCutWorker) return;
  world_.After(
      world_.random().Between(0, 2 * cluster_.scenario().lease_ms * kMilli),
      nullptr, World::Kind::kIdle,
      [this, is_server, index = process->name().back() - '0',
       job = cluster_.job_id()] {
        if (cluster_.coordinator()->over() || job != cluster_.job_id()) return;
        is_server ? cluster_.StartServer(index, true)
                  : cluster_.StartWorker(index, true);
      });
}

// ---- verdicts

std::string Simulation::WhoWaits() const {
  std::string text;
  for (const SimulatedWorker* worker : cluster_.Workers()) {
    for (const auto& rank : worker->ranks()) {
      if (rank->ended()) continue;
      absl::StrAppend(&text, "; ", worker->name(), " (pid ", worker->pid(),
                      ", rank ",
                      rank->rank() ? static_cast<int>(*rank->rank()) : -1,
                      ", epoch ", rank->epoch(), ") ", rank->Doing());
    }
  }
  for (const SimulatedServer* server : cluster_.Servers()) {
    absl::StrAppend(&text, "; ", server->name(), " (pid ", server->pid(),
                    ") serves epoch ", server->serving_epoch());
  }
  return absl::StrCat(text, "; coordinator: ",
                      v1::JobPhase_Name(cluster_.coordinator()->phase()), " ",
                      cluster_.coordinator()->Doing());
}

// When no message is in transit and none will be sent, no process may still
// wait for an answer, because only a deadline would end its wait.
void Simulation::CheckNobodyWaitsInVain() {
  if (cluster_.coordinator()->over() || !cluster_.coordinator()->alive() ||
      network_.AnyCallLost()) {
    return;
  }
  const std::vector<SimulatedServer*> servers = cluster_.Servers();
  const uint64_t epoch = cluster_.coordinator()->PlanEpoch();
  if (epoch == 0 ||
      static_cast<int>(servers.size()) != cluster_.scenario().servers) {
    return;
  }
  for (const SimulatedServer* server : servers) {
    if (server->serving_epoch() != epoch) return;
  }
  std::set<uint32_t> waiting, finished;
  for (const SimulatedWorker* worker : cluster_.Workers()) {
    for (const auto& rank : worker->ranks()) {
      if (rank->ended()) continue;
      if (rank->epoch() != epoch) return;
      if (rank->Finished()) {
        finished.insert(*rank->rank());
      } else if (rank->WaitsForServers()) {
        waiting.insert(*rank->rank());
      } else {
        return;
      }
    }
  }
  const size_t known = waiting.size() + finished.size();
  if (waiting.empty() ||
      known != static_cast<size_t>(cluster_.scenario().workers)) {
    return;
  }
  world_.Violate(
      absl::StrCat("everybody waits and nothing happens", WhoWaits()));
}

void Simulation::CheckNothingIsHeld() {
  for (const SimulatedServer* server : cluster_.Servers()) {
    // A server that has lost its place learns it later.
    if (server->serving_epoch() != cluster_.coordinator()->saved_epoch())
      continue;
    // A rank may have died while its push waited for a step that the stop left
    // out. The call ends by its deadline.
    const std::string held = server->Held(/*calls_count=*/!stop_requested_);
    if (!held.empty()) {
      world_.Violate(absl::StrCat("at the end of the job ", held));
    }
  }
}

void Simulation::CheckEnd() {
  const std::string& message = cluster_.coordinator()->message();
  if (cluster_.coordinator()->phase() == v1::JOB_PHASE_DONE) {
    CheckNothingIsHeld();
    const int64_t saved = cluster_.coordinator()->saved_step().value_or(-1);
    if (saved == cluster_.scenario().steps || stop_requested_) return;
    return world_.Violate(absl::StrCat("the job is done after step ", saved,
                                       " of ", cluster_.scenario().steps));
  }
  const bool names_somebody = absl::StrContains(message, "worker") ||
                              absl::StrContains(message, "server");
  const bool loss_fails =
      cluster_.scenario().on_worker_loss == v1::WORKER_LOSS_FAIL &&
      absl::StrContains(message, "was lost, last heard at step");
  if (loss_fails || (!cluster_.scenario().comes_back && names_somebody) ||
      (stop_requested_ &&
       absl::StrContains(message, "before the first step"))) {
    return;
  }
  world_.Violate(absl::StrCat("the job failed: ", message));
}

Outcome Simulation::Run() {
  network_.set_adversity(cluster_.scenario().adversity);
  for (const Mishap& mishap : cluster_.scenario().mishaps) {
    world_.After(mishap.at_micros, nullptr, World::Kind::kIdle,
                 [this, mishap] { Inflict(mishap); });
  }
  world_.After(cluster_.scenario().calm_micros, nullptr, World::Kind::kIdle,
               [this] {
                 network_.set_adversity({});
                 network_.HealAll();
               });
  cluster_.Boot(0);
  while (world_.violation().empty() && cluster_.Step()) {
    if (!over_since_ && cluster_.coordinator()->over()) {
      over_since_ = world_.now();
      CheckEnd();
    }
    if (over_since_) {
      if (cluster_.Servers().empty() && cluster_.Workers().empty()) break;
      if (world_.now() - *over_since_ > kGoHome) {
        world_.Violate(
            absl::StrCat("the job is over, and somebody stays", WhoWaits()));
      }
    } else if (world_.now() > kMaxMicros || world_.events() > kMaxEvents) {
      world_.Violate(absl::StrCat("the job does not end", WhoWaits()));
    }
    if (world_.pending_work() == 0) CheckNobodyWaitsInVain();
  }
  Outcome outcome;
  outcome.violation = world_.violation();
  outcome.end =
      cluster_.coordinator()->phase() == v1::JOB_PHASE_DONE
          ? absl::StrCat("done after step ",
                         cluster_.coordinator()->saved_step().value_or(-1))
          : cluster_.coordinator()->message();
  outcome.events = world_.events();
  outcome.micros = world_.now();
  outcome.digest = world_.digest();
  outcome.faults = network_.faults();
  return outcome;
}

}  // namespace

Outcome Simulate(const Scenario& scenario,
                 const std::function<void(const std::string&)>& trace) {
  return Simulation(scenario, trace).Run();
}

}  // namespace tributary::simulation
