// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_worker.h"

#include <utility>

namespace tributary::simulation {

SimulatedWorker::SimulatedWorker(int64_t pid, std::string name,
                                 Context* context,
                                 std::optional<uint32_t> wanted_index)
    : Process(pid, std::move(name)), context_(context) {
  Add(wanted_index);
}

SimulatedRank* SimulatedWorker::Add(std::optional<uint32_t> wanted_index) {
  SimulatedRank::Options options;
  options.wanted_index = wanted_index;
  options.number = ranks_.size();
  options.adopt = [this](uint32_t rank) { return Adopt(rank); };
  return ranks_
      .emplace_back(
          std::make_unique<SimulatedRank>(context_, this, std::move(options)))
      .get();
}

void SimulatedWorker::Start() {
  context_->fibers.Start(this,
                         [this] { context_->on_exit(this, ranks_[0]->Run()); });
}

void SimulatedWorker::LetGo() {
  context_->fibers.Kill(this);
  for (auto& rank : ranks_) rank->LetGo();
}

absl::Status SimulatedWorker::Adopt(uint32_t rank) {
  TRIBUTARY_TRACE(context_->world, name(), " takes over rank ", rank);
  const absl::Status status = Add(rank)->Run();
  TRIBUTARY_TRACE(context_->world, name(), ", rank ", rank,
                  " ends: ", status.ToString());
  return status;
}

}  // namespace tributary::simulation
