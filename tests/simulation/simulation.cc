#include "tests/simulation/simulation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/simulated_coordinator.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tests/simulation/processes/simulated_worker.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// Limits beyond which a job counts as stuck.
constexpr int64_t kMaxEvents = 400'000;
constexpr int64_t kMaxMicros = 900 * kSecond;
// Time for all processes to learn that the job is over.
constexpr int64_t kGoHome = 90 * kSecond;

class Simulation {
 public:
  Simulation(const Scenario& scenario,
             const std::function<void(const std::string&)>& trace)
      : scenario_(scenario),
        world_(scenario.seed ^ 0x51D0'0DDB'A11Full, trace),
        network_(&world_),
        model_(scenario_),
        oracle_(&world_, scenario_, &model_),
        ops_(CreateCpuOps()),
        context_{scenario_, world_,
                 network_,  disk_,
                 model_,    oracle_,
                 *ops_,     [this](Process* p, auto& s) {
                   Exited(p, s); }} {}
  ~Simulation() { network_.Close(); }

  Outcome Run();

 private:
  void Boot(int64_t start_step);
  // Starts the first coordinator of a job, or one that continues an earlier
  // one's work.
  void StartCoordinator(int64_t start_step, int64_t recorded_step,
                        const v1::CoordinatorState* restored);
  void StartServer(int index, bool spare);
  void StartWorker(int index, bool wants_place);
  void StartLater(int64_t micros, Process* gone);
  void StartMissingServer();
  void StartMissingWorker();
  void Exited(Process* process, const absl::Status& status);
  void Inflict(const Mishap& mishap);
  void Crash(Process* process, const Mishap& mishap);
  void CutOff(Process* process, const Mishap& mishap);
  void CrashCoordinator(const Mishap& mishap);
  void PowerCut();
  bool NobodyLeft() const;
  void CheckNobodyWaitsInVain();
  void CheckEnd();
  void CheckNothingIsHeld();
  std::string WhoWaits() const;

  template <typename T>
  static std::vector<T*> Living(const std::vector<T*>& processes) {
    std::vector<T*> living;
    std::copy_if(processes.begin(), processes.end(), std::back_inserter(living),
                 [](T* p) { return p->alive(); });
    return living;
  }
  template <typename T>
  T* Pick(const std::vector<T*>& processes, int target) const {
    const std::vector<T*> living = Living(processes);
    return living.empty() ? nullptr : living[target % living.size()];
  }
  // The lowest index that no living process has in its name.
  template <typename T>
  static int MissingIn(const std::vector<T*>& processes) {
    std::set<int> there;
    for (const T* p : Living(processes)) there.insert(p->name().back() - '0');
    int index = 0;
    while (there.count(index) > 0) ++index;
    return index;
  }
  bool IsServer(const Process* process) const {
    return std::find(servers_.begin(), servers_.end(), process) !=
           servers_.end();
  }

  Scenario scenario_;
  World world_;
  Network network_;
  Disk disk_;
  Model model_;
  Oracle oracle_;
  const std::unique_ptr<Ops> ops_;
  Context context_;

  std::vector<std::unique_ptr<Process>> processes_;  // including dead ones
  SimulatedCoordinator* coordinator_ = nullptr;
  std::vector<SimulatedServer*> servers_;
  std::vector<SimulatedWorker*> workers_;
  int64_t last_pid_ = 0;
  uint64_t job_id_ = 0;
  int64_t start_step_ = 0;
  v1::CoordinatorState kept_;  // saved by the coordinator
  bool stop_requested_ = false;
  std::optional<int64_t> over_since_;
};

// ---- processes

void Simulation::Boot(int64_t start_step) {
  ++job_id_;
  StartCoordinator(start_step, 0, nullptr);
  for (int s = 0; s < scenario_.servers; ++s) StartServer(s, false);
  for (int w = 0; w < scenario_.workers; ++w) StartWorker(w, true);
}

void Simulation::StartCoordinator(int64_t start_step, int64_t recorded_step,
                                  const v1::CoordinatorState* restored) {
  JobControl::Options options;
  options.state.job = JobOf(scenario_);
  options.state.job_id = job_id_;
  options.state.start.lineage = 1;
  options.state.heartbeat_ms = static_cast<uint32_t>(scenario_.heartbeat_ms);
  options.state.lease_ms = static_cast<uint32_t>(scenario_.lease_ms);
  options.state.start_timeout_micros = 300 * kSecond;
  options.state.start.step = start_step;
  if (start_step > 0)
    options.state.start.restore_from = Disk::FolderName(start_step);
  options.predecessor.recorded.step = recorded_step;
  options.predecessor.state = restored;
  options.save = [this](const v1::CoordinatorState& state) -> absl::Status {
    if (disk_.full()) {
      ++network_.faults()["state not saved"];
      return absl::ResourceExhaustedError("the disk is full");
    }
    kept_ = state;
    return absl::OkStatus();
  };
  auto coordinator = std::make_unique<SimulatedCoordinator>(
      ++last_pid_, &context_, std::move(options));
  coordinator_ = coordinator.get();
  processes_.push_back(std::move(coordinator));
  network_.Listen(SimulatedCoordinator::kAddress, coordinator_);
  coordinator_->Start();
  start_step_ = start_step;
}

void Simulation::StartServer(int index, bool spare) {
  SimulatedServer::Options options;
  const int64_t pid = ++last_pid_;
  options.address = scenario_.same_address && !spare
                        ? absl::StrCat("10.0.0.", 1 + index, ":7000")
                        : absl::StrCat("10.0.0.", 1 + index, ":", 7000 + pid);
  if (scenario_.fixed_places) {
    options.wanted_index = static_cast<uint32_t>(index);
  }
  auto server = std::make_unique<SimulatedServer>(
      pid, absl::StrCat("server-", index), &context_, options);
  servers_.push_back(server.get());
  processes_.push_back(std::move(server));
  servers_.back()->Start();
}

void Simulation::StartWorker(int index, bool wants_place) {
  std::optional<uint32_t> wanted;
  if (scenario_.fixed_places && wants_place)
    wanted = static_cast<uint32_t>(index);
  auto worker = std::make_unique<SimulatedWorker>(
      ++last_pid_, absl::StrCat("worker-", index), &context_, wanted);
  workers_.push_back(worker.get());
  processes_.push_back(std::move(worker));
  workers_.back()->Start();
}

// Restarts a process later, as a supervisor of daemons does.
void Simulation::StartLater(int64_t micros, Process* gone) {
  world_.After(micros, nullptr, World::Kind::kWork,
               [this, is_server = IsServer(gone), job = job_id_] {
                 if (coordinator_->over() || job != job_id_) return;
                 is_server ? StartMissingServer() : StartMissingWorker();
               });
}

void Simulation::StartMissingServer() {
  const int missing = MissingIn(servers_);
  if (missing < scenario_.servers) StartServer(missing, false);
}

void Simulation::StartMissingWorker() {
  // A running job reassigns ranks, so one living process is sufficient.
  const bool shrinks = scenario_.on_worker_loss == v1::WORKER_LOSS_SHRINK &&
                       coordinator_->phase() != v1::JOB_PHASE_WAITING;
  if (shrinks && !Living(workers_).empty()) return;
  const int missing = MissingIn(workers_);
  if (missing < scenario_.workers) StartWorker(missing, !shrinks);
}

void Simulation::Exited(Process* process, const absl::Status& status) {
  if (!process->alive()) return;
  TRIBUTARY_TRACE(world_, process->name(), " (pid ", process->pid(),
                  ") ends: ", status.ToString());
  // The process that ends may be running, so it dies after it has returned.
  world_.After(0, nullptr, World::Kind::kWork, [this, process] {
    if (!process->alive()) return;
    process->Die();
    if (!coordinator_->over() && scenario_.comes_back) {
      StartLater(world_.random().Scale(10 * kMilli, kSecond), process);
    }
  });
}

// ---- mishaps

void Simulation::Crash(Process* process, const Mishap& mishap) {
  const bool is_server = IsServer(process);
  std::optional<uint32_t> index;
  if (is_server) {
    index = static_cast<SimulatedServer*>(process)->index();
  } else {
    index = static_cast<SimulatedWorker*>(process)->ranks()[0]->rank();
  }
  process->Die();
  if (mishap.known && index) {
    world_.After(
        world_.random().Scale(kMilli, 50 * kMilli), coordinator_,
        World::Kind::kWork, [this, index, is_server, pid = process->pid()] {
          coordinator_->MemberLost(
              is_server ? v1::ROLE_SERVER : v1::ROLE_WORKER, *index, pid);
        });
  }
  if (scenario_.comes_back) StartLater(mishap.lasts_micros, process);
}

void Simulation::CutOff(Process* process, const Mishap& mishap) {
  std::vector<Process*> others = {coordinator_};
  for (SimulatedServer* server : Living(servers_)) {
    if (server != process) others.push_back(server);
  }
  Random& random = world_.random();
  Process* other = others[random.Next() % others.size()];
  const int64_t until = world_.now() + mishap.lasts_micros;
  const int64_t ways = random.Between(0, 2);
  if (ways != 0) network_.Cut(process, other, until);
  if (ways != 1) network_.Cut(other, process, until);
}

void Simulation::CrashCoordinator(const Mishap& mishap) {
  const int64_t recorded = coordinator_->recorded_step();
  coordinator_->Die();
  world_.After(mishap.lasts_micros, nullptr, World::Kind::kWork,
               [this, recorded, job = job_id_] {
                 if (job != job_id_) return;
                 const v1::CoordinatorState kept = kept_;
                 StartCoordinator(start_step_, recorded, &kept);
               });
}

void Simulation::PowerCut() {
  for (auto& process : processes_) {
    if (process->alive()) process->Die();
  }
  servers_.clear();
  workers_.clear();
  scenario_.servers = scenario_.servers_after_resume;
  // A resume refuses a damaged checkpoint and names the one before it.
  const int64_t step = disk_.OlderWhole(0, INT64_MAX).value_or(0);
  disk_.RemoveAfter(step);
  Boot(step);
}

void Simulation::Inflict(const Mishap& mishap) {
  using enum Mishap::Kind;
  if (coordinator_->over() || !coordinator_->alive()) return;
  Process* process = nullptr;
  switch (mishap.kind) {
    case kCrashWorker:
    case kPauseWorker:
    case kCutWorker:
      process = Pick(workers_, mishap.target);
      break;
    case kCrashServer:
    case kPauseServer:
    case kCutServer:
      process = Pick(servers_, mishap.target);
      break;
    default:
      process = coordinator_;
  }
  if (process == nullptr) return;
  ++network_.faults()[NameOf(mishap.kind)];
  TRIBUTARY_TRACE(world_, "MISHAP: ", NameOf(mishap.kind), ": ",
                  process->name(), " (pid ", process->pid(), ")");
  switch (mishap.kind) {
    case kCrashWorker:
    case kCrashServer:
      Crash(process, mishap);
      break;
    case kPauseWorker:
    case kPauseServer:
    case kPauseCoordinator:
      process->Pause(world_.now() + mishap.lasts_micros);
      break;
    case kCrashCoordinator:
      CrashCoordinator(mishap);
      break;
    case kCutWorker:
    case kCutServer:
      CutOff(process, mishap);
      break;
    case kFullDisk:
      disk_.set_full(true);
      world_.After(mishap.lasts_micros, nullptr, World::Kind::kIdle,
                   [this] { disk_.set_full(false); });
      break;
    case kDamagedCheckpoint:
      if (disk_.NewestStep() > start_step_ || start_step_ == 0) {
        disk_.DamageNewest();
      }
      break;
    case kStop:
      stop_requested_ = true;
      coordinator_->RequestStop();
      break;
    case kPowerCut:
      PowerCut();
      break;
  }
  const bool is_server =
      mishap.kind == kPauseServer || mishap.kind == kCutServer;
  const bool is_worker =
      mishap.kind == kPauseWorker || mishap.kind == kCutWorker;
  if (!mishap.spare || (!is_server && !is_worker)) return;
  world_.After(
      world_.random().Between(0, 2 * scenario_.lease_ms * kMilli), nullptr,
      World::Kind::kIdle,
      [this, is_server, index = process->name().back() - '0', job = job_id_] {
        if (coordinator_->over() || job != job_id_) return;
        is_server ? StartServer(index, true) : StartWorker(index, true);
      });
}

// ---- verdicts

std::string Simulation::WhoWaits() const {
  std::string text;
  for (const SimulatedWorker* worker : Living(workers_)) {
    for (const auto& rank : worker->ranks()) {
      if (rank->ended()) continue;
      absl::StrAppend(&text, "; ", worker->name(), " (pid ", worker->pid(),
                      ", rank ",
                      rank->rank() ? static_cast<int>(*rank->rank()) : -1,
                      ", epoch ", rank->epoch(), ") ", rank->Doing());
    }
  }
  for (const SimulatedServer* server : Living(servers_)) {
    absl::StrAppend(&text, "; ", server->name(), " (pid ", server->pid(),
                    ") serves epoch ", server->serving_epoch());
  }
  return absl::StrCat(
      text, "; coordinator: ", v1::JobPhase_Name(coordinator_->phase()), " ",
      coordinator_->control().Snapshot().message());
}

// When no message is in transit and none will be sent, no process may still
// wait for an answer, because only a deadline would end its wait.
void Simulation::CheckNobodyWaitsInVain() {
  if (coordinator_->over() || !coordinator_->alive() ||
      network_.AnyCallLost()) {
    return;
  }
  const std::vector<SimulatedServer*> servers = Living(servers_);
  const uint64_t epoch = coordinator_->PlanEpoch();
  if (epoch == 0 || static_cast<int>(servers.size()) != scenario_.servers) {
    return;
  }
  for (const SimulatedServer* server : servers) {
    if (server->serving_epoch() != epoch) return;
  }
  std::set<uint32_t> waiting, finished;
  for (const SimulatedWorker* worker : Living(workers_)) {
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
  if (waiting.empty() || known != static_cast<size_t>(scenario_.workers)) {
    return;
  }
  world_.Violate(
      absl::StrCat("everybody waits and nothing happens", WhoWaits()));
}

void Simulation::CheckNothingIsHeld() {
  for (const SimulatedServer* server : Living(servers_)) {
    // A server that has lost its place learns it later.
    if (server->serving_epoch() != coordinator_->saved_epoch()) continue;
    const std::string held = server->Held();
    if (!held.empty()) {
      world_.Violate(absl::StrCat("at the end of the job ", held));
    }
  }
}

void Simulation::CheckEnd() {
  const std::string& message = coordinator_->message();
  if (coordinator_->phase() == v1::JOB_PHASE_DONE) {
    CheckNothingIsHeld();
    const int64_t saved = coordinator_->saved_step().value_or(-1);
    if (saved == scenario_.steps || stop_requested_) return;
    return world_.Violate(absl::StrCat("the job is done after step ", saved,
                                       " of ", scenario_.steps));
  }
  const bool names_somebody = absl::StrContains(message, "worker") ||
                              absl::StrContains(message, "server");
  const bool loss_fails = scenario_.on_worker_loss == v1::WORKER_LOSS_FAIL &&
                          absl::StrContains(message, "was lost at step");
  if (loss_fails || (!scenario_.comes_back && names_somebody) ||
      (stop_requested_ &&
       absl::StrContains(message, "before the first step"))) {
    return;
  }
  world_.Violate(absl::StrCat("the job failed: ", message));
}

bool Simulation::NobodyLeft() const {
  return Living(servers_).empty() && Living(workers_).empty();
}

Outcome Simulation::Run() {
  network_.set_adversity(scenario_.adversity);
  for (const Mishap& mishap : scenario_.mishaps) {
    world_.After(mishap.at_micros, nullptr, World::Kind::kIdle,
                 [this, mishap] { Inflict(mishap); });
  }
  world_.After(scenario_.calm_micros, nullptr, World::Kind::kIdle, [this] {
    network_.set_adversity({});
    network_.HealAll();
  });
  Boot(0);
  while (world_.violation().empty() && world_.Step()) {
    if (!over_since_ && coordinator_->over()) {
      over_since_ = world_.now();
      CheckEnd();
    }
    if (over_since_) {
      if (NobodyLeft()) break;
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
  outcome.end = coordinator_->phase() == v1::JOB_PHASE_DONE
                    ? absl::StrCat("done after step ",
                                   coordinator_->saved_step().value_or(-1))
                    : coordinator_->message();
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
