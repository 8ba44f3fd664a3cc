// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/member_agent.h"
#include "tests/simulation/processes/simulated_checkpointer.h"
#include "tests/simulation/processes/simulated_client.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/session/rank_life.h"

namespace tributary::simulation {

// One rank's work: performs the acts of its RankLife in events, as RankWork,
// Trainer and ParameterServerSynchronizer do on threads.
class SimulatedRank {
 public:
  struct Options {
    std::optional<uint32_t> wanted_index;
    bool adopted = false;
    // Called when the coordinator wants this process to take over another rank.
    std::function<SimulatedRank*(uint32_t rank)> on_adopt;
    std::function<void(const absl::Status&)> on_end;
  };
  SimulatedRank(Context* context, Process* process, Options options);

  void Start() { member_.Join(); }
  // Drops all of its future events.
  void LetGo();

  bool ended() const { return ended_; }
  std::optional<uint32_t> rank() const { return rank_; }
  uint64_t epoch() const { return life_.epoch(); }
  // True when it waits only for answers of servers.
  bool WaitsForServers() const { return client_.waits(); }
  // True when it has finished all steps and waits for the others.
  bool Finished() const { return life_.finished(); }
  // "pushes, step 3"
  std::string Doing() const;

 private:
  void Joined(const absl::Status& status);
  void OnNews();
  void Live();  // performs the next act
  void DeclareModel();
  void GetPlan();
  void Train();
  void PullStart();
  void NextStep();
  void Compute();
  void Push();
  void FinishStep();
  void Report(int64_t finished);
  void Trained(const absl::Status& status);
  void ReportUnreadable();
  void ReportCheckpoint(const v1::CheckpointReport& report);
  // As ResidualCheckpoints.
  absl::Status StartResidual();
  void AddToResidual();
  void WriteIfAsked();
  void WriteResidual();
  void DropCheckpointer();
  void End(const absl::Status& status);

  // Calls `then` after a success, and ends the training after an error.
  SimulatedClient::Done Then(std::function<void()> then);
  void StartAt(int64_t step) {
    step_ = step;
    member_.state().StartAt(life_.epoch(), step, progress_.begun);
  }

  Context* const context_;
  Process* const process_;
  const Options options_;
  const ApplyMode mode_;
  MemberAgent member_;
  SimulatedClient client_;
  RankLife life_;
  std::optional<uint32_t> rank_;
  bool ended_ = false;
  const char* doing_ = "joins";

  v1::Plan plan_;
  RankProgress progress_;
  bool at_gate_ = false;   // asks whether the next step may begin
  int64_t computing_ = 0;  // invalidates the end of an earlier computation
  int64_t step_ = 0;
  Tensors gradient_;
  std::vector<float> residual_;  // of the first parameter
  int64_t written_ = 0;          // step of the last checkpoint
  std::shared_ptr<SimulatedCheckpointer> checkpointer_;
  bool awaits_plan_ = false;  // after a checkpoint that it cannot read
  std::map<uint32_t, SimulatedRank*> adopted_;  // until they end
};

}  // namespace tributary::simulation
