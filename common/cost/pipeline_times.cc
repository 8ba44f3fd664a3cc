// SPDX-License-Identifier: Apache-2.0
#include "common/cost/pipeline_times.h"

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "common/cost/link.h"
#include "common/plan/pipeline_schedule.h"

namespace tributary {
namespace {

constexpr double kUnknown = -1;

class Replay {
 public:
  Replay(const std::vector<StageTime>& stages, int micro_batches,
         PipelineSchedule schedule, const ClusterShape& cluster)
      : stages_(stages),
        cluster_(cluster),
        states_(stages.size(), State(micro_batches, cluster)) {
    const int count = static_cast<int>(stages.size());
    for (int s = 0; s < count; ++s) {
      states_[s].tasks = MakePipelineTasks(schedule, s, count, micro_batches);
      states_[s].most_in_flight =
          ActivationsInFlight(schedule, s, count, micro_batches);
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
      TRIBUTARY_CHECK(state.next == state.tasks.size());
      times.end_seconds = std::max(times.end_seconds, state.free);
      times.last_backward_begins.push_back(state.begun);
      times.last_backward_ends.push_back(state.free);
      times.most_in_flight.push_back(state.most_in_flight);
    }
    return times;
  }

 private:
  struct State {
    State(int micro_batches, const ClusterShape& cluster)
        : up(cluster.bandwidth, cluster.burst_bytes),
          inputs(micro_batches, kUnknown),
          gradients(micro_batches, kUnknown) {}

    std::vector<PipelineTask> tasks;
    int most_in_flight = 0;
    size_t next = 0;
    double free = 0;
    double begun = 0;  // start of the last task
    Link up;
    std::vector<double> inputs;     // arrival time, by micro-batch
    std::vector<double> gradients;  // same, for gradients of the stage's output
  };

  // Runs the stage's next task if its input's arrival time is known.
  bool Step(size_t s) {
    State& state = states_[s];
    if (state.next == state.tasks.size()) return false;
    const PipelineTask task = state.tasks[state.next];
    const bool forward = task.kind == PipelineTask::Kind::kForward;
    const double needed = forward ? state.inputs[task.micro_batch]
                                  : state.gradients[task.micro_batch];
    if (needed == kUnknown) return false;
    state.begun = std::max(state.free, needed);
    state.free = state.begun + (forward ? stages_[s].forward_seconds
                                        : stages_[s].backward_seconds);
    ++state.next;
    if (forward && s + 1 == states_.size()) {
      state.gradients[task.micro_batch] = state.free;
    } else if (forward) {
      states_[s + 1].inputs[task.micro_batch] =
          Send(&state, stages_[s].output_bytes);
    } else if (s > 0) {
      states_[s - 1].gradients[task.micro_batch] =
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
                             int micro_batches, PipelineSchedule schedule,
                             const ClusterShape& cluster) {
  return Replay(stages, micro_batches, schedule, cluster).Run();
}

}  // namespace tributary
