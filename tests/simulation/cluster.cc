// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/cluster.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// The lowest index that none of the processes has in its name.
template <typename T>
int MissingIn(const std::vector<T*>& processes) {
  std::set<int> there;
  for (const T* p : processes) there.insert(p->name().back() - '0');
  int index = 0;
  while (there.count(index) > 0) ++index;
  return index;
}

}  // namespace

Cluster::Cluster(const Scenario& scenario,
                 const std::function<void(const std::string&)>& trace)
    : scenario_(scenario),
      world_(scenario.seed ^ 0x51D0'0DDB'A11Full, trace),
      network_(&world_),
      model_(scenario_),
      oracle_(&world_, scenario_, &model_),
      ops_(CreateCpuOps()),
      context_{
          scenario_, world_, fibers_,
          network_,  disk_,  model_,
          oracle_,   *ops_,  [this](Process* p, auto& s) { Exited(p, s); }},
      fibers_(&world_) {}

bool Cluster::Step() {
  if (!world_.Step()) return false;
  fibers_.Settle();
  return true;
}

bool Cluster::IsServer(const Process* process) const {
  return std::find(servers_.begin(), servers_.end(), process) != servers_.end();
}

void Cluster::Boot(int64_t start_step) {
  ++job_id_;
  kept_.reset();  // each job has its own state
  StartCoordinator(start_step, 0, nullptr);
  for (int s = 0; s < scenario_.servers; ++s) StartServer(s, false);
  for (int w = 0; w < scenario_.workers; ++w) StartWorker(w, true);
}

void Cluster::StartCoordinator(int64_t start_step, int64_t recorded_step,
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

void Cluster::StartServer(int index, bool spare) {
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

void Cluster::StartWorker(int index, bool wants_place) {
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
void Cluster::StartLater(int64_t micros, Process* gone) {
  world_.After(micros, nullptr, World::Kind::kWork,
               [this, is_server = IsServer(gone), job = job_id_] {
                 if (coordinator_->over() || job != job_id_) return;
                 is_server ? StartMissingServer() : StartMissingWorker();
               });
}

void Cluster::StartMissingServer() {
  const int missing = MissingIn(Servers());
  if (missing < scenario_.servers) StartServer(missing, false);
}

void Cluster::StartMissingWorker() {
  // A running job reassigns ranks, so one living process is sufficient.
  const bool shrinks = scenario_.on_worker_loss == v1::WORKER_LOSS_SHRINK &&
                       coordinator_->phase() != v1::JOB_PHASE_WAITING;
  if (shrinks && !Workers().empty()) return;
  const int missing = MissingIn(Workers());
  if (missing < scenario_.workers) StartWorker(missing, !shrinks);
}

void Cluster::Exited(Process* process, const absl::Status& status) {
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

void Cluster::Crash(Process* process, const Mishap& mishap) {
  const bool is_server = IsServer(process);
  std::optional<uint32_t> index;
  if (is_server) {
    index = static_cast<SimulatedServer*>(process)->index();
  } else {
    index = static_cast<SimulatedWorker*>(process)->ranks()[0]->rank();
  }
  process->Die();
  if (mishap.known && index) {
    world_.After(world_.random().Scale(kMilli, 50 * kMilli), coordinator_,
                 World::Kind::kWork,
                 [this, index, is_server, pid = process->pid()] {
                   coordinator_->control().MemberLost(
                       is_server ? v1::ROLE_SERVER : v1::ROLE_WORKER, *index,
                       pid, "killed");
                 });
  }
  if (scenario_.comes_back) StartLater(mishap.lasts_micros, process);
}

void Cluster::CrashCoordinator(const Mishap& mishap) {
  const int64_t recorded = coordinator_->recorded_step();
  coordinator_->Die();
  world_.After(mishap.lasts_micros, nullptr, World::Kind::kWork,
               [this, recorded, job = job_id_] {
                 if (job != job_id_) return;
                 const std::optional<v1::CoordinatorState> kept = kept_;
                 StartCoordinator(start_step_, recorded,
                                  kept ? &*kept : nullptr);
               });
}

void Cluster::PowerCut() {
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

}  // namespace tributary::simulation
