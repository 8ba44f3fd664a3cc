#include "common/cost/pipeline_times.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/cost/link.h"

namespace tributary {
namespace {

struct Pass {
  bool forward = true;
  int micro_batch = 0;
};

// GPipe: all forward, then all backward. 1F1B: as many forward passes as there
// are stages behind, then one backward for each forward.
std::vector<Pass> PassesOf(int stage, int stages, int micro_batches,
                           Schedule schedule) {
  const int warm_up = schedule == Schedule::kGPipe
                          ? micro_batches
                          : std::min(micro_batches, stages - stage - 1);
  std::vector<Pass> passes;
  int forward = 0, backward = 0;
  while (forward < warm_up) passes.push_back({true, forward++});
  while (backward < micro_batches) {
    if (forward < micro_batches) passes.push_back({true, forward++});
    passes.push_back({false, backward++});
  }
  return passes;
}

int MostInFlight(const std::vector<Pass>& passes) {
  int in_flight = 0, most = 0;
  for (const Pass& pass : passes) {
    in_flight += pass.forward ? 1 : -1;
    most = std::max(most, in_flight);
  }
  return most;
}

constexpr double kUnknown = -1;

class Replay {
 public:
  Replay(const std::vector<StageTime>& stages, int micro_batches,
         Schedule schedule, const ClusterShape& cluster)
      : stages_(stages),
        cluster_(cluster),
        states_(stages.size(), State(micro_batches, cluster)) {
    const int count = static_cast<int>(stages.size());
    for (int s = 0; s < count; ++s) {
      states_[s].passes = PassesOf(s, count, micro_batches, schedule);
    }
    std::fill(states_[0].inputs.begin(), states_[0].inputs.end(), 0.0);
  }

  PipelineTimes Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < states_.size(); ++s) {
        while (Step(s)) moved = true;
      }
    }
    PipelineTimes times;
    for (const State& state : states_) {
      TRIBUTARY_CHECK(state.next == state.passes.size());
      times.end_seconds = std::max(times.end_seconds, state.free);
      times.last_backward_begins.push_back(state.begun);
      times.last_backward_ends.push_back(state.free);
      times.most_in_flight.push_back(MostInFlight(state.passes));
    }
    return times;
  }

 private:
  struct State {
    State(int micro_batches, const ClusterShape& cluster)
        : up(cluster.bandwidth, cluster.burst_bytes),
          inputs(micro_batches, kUnknown),
          gradients(micro_batches, kUnknown) {}

    std::vector<Pass> passes;
    size_t next = 0;
    double free = 0;
    double begun = 0;  // the last pass
    Link up;
    std::vector<double> inputs;     // when they are there, by micro-batch
    std::vector<double> gradients;  // of the stage's output
  };

  // The stage's next pass, if what it needs is known.
  bool Step(size_t s) {
    State& state = states_[s];
    if (state.next == state.passes.size()) return false;
    const Pass pass = state.passes[state.next];
    const double needed = pass.forward ? state.inputs[pass.micro_batch]
                                       : state.gradients[pass.micro_batch];
    if (needed == kUnknown) return false;
    state.begun = std::max(state.free, needed);
    state.free = state.begun + (pass.forward ? stages_[s].forward_seconds
                                             : stages_[s].backward_seconds);
    ++state.next;
    if (pass.forward && s + 1 == states_.size()) {
      state.gradients[pass.micro_batch] = state.free;
    } else if (pass.forward) {
      states_[s + 1].inputs[pass.micro_batch] =
          Send(&state, stages_[s].output_bytes);
    } else if (s > 0) {
      states_[s - 1].gradients[pass.micro_batch] =
          Send(&state, stages_[s - 1].output_bytes);
    }
    return true;
  }

  double Send(State* state, double bytes) const {
    return state->up.Serve(state->free, bytes) + cluster_.latency;
  }

  const std::vector<StageTime>& stages_;
  const ClusterShape& cluster_;
  std::vector<State> states_;
};

}  // namespace

PipelineTimes ReplayPipeline(const std::vector<StageTime>& stages,
                             int micro_batches, Schedule schedule,
                             const ClusterShape& cluster) {
  return Replay(stages, micro_batches, schedule, cluster).Run();
}

}  // namespace tributary
