// SPDX-License-Identifier: Apache-2.0
#include "server/store/block_runs.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace tributary {

BlockRuns::BlockRuns(const Block& block, const GroupedOptimizer& optimizer,
                     const ParameterSpecs& parameters)
    : block_(block), optimizer_(optimizer) {
  int64_t elements = 0;  // in state_
  for (const Slice& slice : block.slices) {
    const ParameterSpec& parameter = parameters[slice.parameter];
    if (runs_.empty() || optimizer.factors() ||
        !optimizer.StepsAlike(*runs_.back().like, parameter)) {
      runs_.push_back({.begin = slice.offset,
                       .like = &parameter,
                       .group = optimizer.GroupOf(parameter),
                       .frozen = optimizer.IsFrozen(parameter),
                       .state_begin = elements,
                       .parameter = slice.parameter});
    }
    runs_.back().end = slice.offset + slice.size();
    if (optimizer.Factors(parameter)) {
      runs_.back().moments.emplace(parameter, slice.begin, slice.end);
    } else {
      elements += slice.size();
    }
  }
  const auto states = static_cast<int>(optimizer.state_names().size());
  for (int i = 0; i < states; ++i) {
    state_.emplace_back(elements, /*stagger=*/i + 1);
  }
}

BlockRuns::Pointers BlockRuns::StateAt(const Run& run, int64_t begin) const {
  Pointers state = {};
  for (size_t i = 0; i < state_.size(); ++i) {
    state[i] = state_[i].data() + run.state_begin + (begin - run.begin);
  }
  return state;
}

void BlockRuns::Initialize(const float* weights) {
  for (const Run& run : runs_) {
    if (run.moments) continue;  // 0 since construction
    optimizer_.of_group(run.group).InitializeState(
        run.size(), weights + run.begin, StateAt(run, run.begin).data());
  }
}

absl::Status BlockRuns::Restore(const Load& load, float* weights) {
  if (optimizer_.factors()) return RestoreExpanded(load, weights);
  std::vector<float*> state;
  for (const SharedBuffer& buffer : state_) state.push_back(buffer.data());
  return load(block_, weights, state);
}

absl::Status BlockRuns::RestoreExpanded(const Load& load, float* weights) {
  std::vector<SharedBuffer> state;
  std::vector<float*> pointers;
  for (size_t i = 0; i < state_.size(); ++i) {
    pointers.push_back(state.emplace_back(block_.size).data());
  }
  TRIBUTARY_RETURN_IF_ERROR(load(block_, weights, pointers));
  for (Run& run : runs_) {
    if (!run.moments) {
      const Pointers own = StateAt(run, run.begin);
      for (size_t i = 0; i < state_.size(); ++i) {
        std::copy_n(pointers[i] + run.begin, run.size(), own[i]);
      }
      continue;
    }
    // Loads the matrix's first row: the slice may lack some of the columns.
    const auto columns = static_cast<int64_t>(run.moments->columns().size());
    const Block first_row = {
        .shard = block_.shard,
        .size = columns,
        .slices = {{.parameter = run.parameter, .begin = 0, .end = columns}}};
    std::vector<float> unused(columns), rows(columns), averages(columns);
    TRIBUTARY_RETURN_IF_ERROR(
        load(first_row, unused.data(), {rows.data(), averages.data()}));
    run.moments->Restore(pointers[0] + run.begin, averages);
  }
  return absl::OkStatus();
}

std::vector<SharedBuffer> BlockRuns::Expanded() const {
  if (!optimizer_.factors()) return state_;
  std::vector<SharedBuffer> state;
  for (size_t i = 0; i < state_.size(); ++i) state.emplace_back(block_.size);
  for (const Run& run : runs_) {
    if (run.moments) {
      run.moments->Expand(state[0].data() + run.begin,
                          state[1].data() + run.begin);
      continue;
    }
    const Pointers own = StateAt(run, run.begin);
    for (size_t i = 0; i < state_.size(); ++i) {
      std::copy_n(own[i], run.size(), state[i].data() + run.begin);
    }
  }
  return state;
}

void BlockRuns::UpdateFactors(const OptimizerSteps& steps,
                              const std::vector<std::vector<double>>& totals) {
  for (Run& run : runs_) {
    if (!run.moments || run.frozen) continue;
    run.moments->Update(steps[run.group], totals[run.parameter]);
  }
}

}  // namespace tributary
