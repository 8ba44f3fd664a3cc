// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/parameter_memory.h"
#include "common/member/member.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/member_host.h"
#include "tests/simulation/processes/simulated_calls.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/session/adoptions.h"
#include "worker/rank/session/canceller.h"
#include "worker/rank/session/rank_driver.h"

namespace tributary::simulation {

// One rank's program. Its RankDriver says when it trains. It trains with the
// synchronizer of a built-in model, as RankWork and Trainer do.
class SimulatedRank final : public DrivenRank {
 public:
  struct Options {
    std::optional<uint32_t> wanted_index;
    size_t number = 0;  // among the ranks that this process has started
    // Runs another rank in this process, to its end.
    Adoptions::Work adopt;
  };
  SimulatedRank(Context* context, Process* process, Options options);

  // Runs from taking a place to the end of the job and of the ranks that this
  // rank has taken over.
  absl::Status Run();
  // Called when its process dies.
  void LetGo() { ended_ = true; }

  bool ended() const { return ended_; }
  std::optional<uint32_t> rank() const { return rank_; }
  uint64_t epoch() const { return plan_.epoch(); }
  // True when it waits only for answers of servers.
  bool WaitsForServers() const { return calls_ != nullptr && calls_->waits(); }
  // True when it has finished all steps and waits for the others.
  bool Finished() const { return finished_; }
  // "pushes, step 3"
  std::string Doing() const;

 private:
  // The memory of the model's values.
  struct Memory final : ParameterMemory {
    explicit Memory(const Model& model)
        : specs(model.parameters()),
          weights(model.Initial()),
          gradients(model.Initial()) {}
    const ParameterSpecs& parameters() const override { return specs; }
    float* weight(int i) override { return weights[i].data(); }
    float* gradient(int i) override { return gradients[i].data(); }

    const ParameterSpecs& specs;
    Tensors weights, gradients;
  };

  absl::Status Declare() override;
  void EndPlan() override;
  absl::Status GiveWeights() override;

  absl::StatusOr<std::unique_ptr<Member>> Join(Adoptions* adoptions);
  absl::Status Live(Member* member);
  absl::Status Connect();
  absl::Status Train(const v1::Plan& plan);
  absl::Status TrainSteps();
  void Compute();
  void Report(int64_t finished);

  Context* const context_;
  Process* const process_;
  const Options options_;
  MemberHost host_;
  Memory memory_;
  Canceller canceller_;
  Member* member_ = nullptr;  // while it lives
  std::optional<uint32_t> rank_;
  bool recomputes_ = false;
  bool ended_ = false, finished_ = false;
  const char* doing_ = "joins";

  v1::Plan plan_;
  // Lives as long as its plan: while the other ranks finish, it may still write
  // a checkpoint.
  std::unique_ptr<GradientSynchronizer> synchronizer_;
  const SimulatedCalls* calls_ = nullptr;  // of synchronizer_
  int64_t step_ = 0;
};

}  // namespace tributary::simulation
