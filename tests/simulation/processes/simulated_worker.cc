// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_worker.h"

#include <algorithm>
#include <utility>

namespace tributary::simulation {

SimulatedWorker::SimulatedWorker(int64_t pid, std::string name,
                                 Context* context,
                                 std::optional<uint32_t> wanted_index)
    : Process(pid, std::move(name)), context_(context) {
  SimulatedRank::Options options;
  options.wanted_index = wanted_index;
  options.on_adopt = [this](uint32_t rank) { return Adopt(rank); };
  options.on_end = [this](const absl::Status& status) {
    end_ = status;
    EndWhenAllHave();
  };
  ranks_.push_back(
      std::make_unique<SimulatedRank>(context, this, std::move(options)));
}

void SimulatedWorker::LetGo() {
  context_->fibers.Kill(this);
  for (auto& rank : ranks_) rank->LetGo();
}

SimulatedRank* SimulatedWorker::Adopt(uint32_t rank) {
  TRIBUTARY_TRACE(context_->world, name(), " takes over rank ", rank);
  SimulatedRank::Options options;
  options.wanted_index = rank;
  options.number = ranks_.size();
  options.on_adopt = [this](uint32_t another) { return Adopt(another); };
  options.on_end = [this, rank](const absl::Status& status) {
    TRIBUTARY_TRACE(context_->world, name(), ", rank ", rank,
                    " ends: ", status.ToString());
    EndWhenAllHave();
  };
  ranks_.push_back(
      std::make_unique<SimulatedRank>(context_, this, std::move(options)));
  ranks_.back()->Start();
  return ranks_.back().get();
}

void SimulatedWorker::EndWhenAllHave() {
  const bool all = std::all_of(ranks_.begin(), ranks_.end(),
                               [](const auto& rank) { return rank->ended(); });
  if (all && end_) context_->on_exit(this, *end_);
}

}  // namespace tributary::simulation
