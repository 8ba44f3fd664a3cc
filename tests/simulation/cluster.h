// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/simulated_coordinator.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tests/simulation/processes/simulated_worker.h"

namespace tributary::simulation {

// The processes of one simulated job and what they share: starts them, ends
// them, and starts others in their places.
class Cluster {
 public:
  Cluster(const Scenario& scenario,
          const std::function<void(const std::string&)>& trace);
  ~Cluster() { network_.Close(); }

  // Runs the next event and what follows from it; false when there is none.
  bool Step();

  // Starts all processes of a job that continues from this step.
  void Boot(int64_t start_step);
  void StartServer(int index, bool spare);
  void StartWorker(int index, bool wants_place);

  void Crash(Process* process, const Mishap& mishap);
  // Ends the coordinator. Later another one continues from the saved state.
  void CrashCoordinator(const Mishap& mishap);
  // Ends all processes and resumes the job from its newest whole checkpoint.
  void PowerCut();

  const Scenario& scenario() const { return scenario_; }
  World& world() { return world_; }
  Network& network() { return network_; }
  Disk& disk() { return disk_; }
  SimulatedCoordinator* coordinator() const { return coordinator_; }
  // The living servers and workers.
  std::vector<SimulatedServer*> Servers() const { return Living(servers_); }
  std::vector<SimulatedWorker*> Workers() const { return Living(workers_); }
  // Changes when the job is resumed.
  uint64_t job_id() const { return job_id_; }
  int64_t start_step() const { return start_step_; }

 private:
  // Starts the first coordinator of a job, or one that continues the work of an
  // earlier one.
  void StartCoordinator(int64_t start_step, int64_t recorded_step,
                        const v1::CoordinatorState* restored);
  void StartLater(int64_t micros, Process* gone);
  void StartMissingServer();
  void StartMissingWorker();
  void Exited(Process* process, const absl::Status& status);
  bool IsServer(const Process* process) const;

  template <typename T>
  static std::vector<T*> Living(const std::vector<T*>& processes) {
    std::vector<T*> living;
    std::copy_if(processes.begin(), processes.end(), std::back_inserter(living),
                 [](T* p) { return p->alive(); });
    return living;
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
  std::optional<v1::CoordinatorState> kept_;  // saved by the coordinator
  Fibers fibers_;  // destroyed before the processes they use
};

}  // namespace tributary::simulation
