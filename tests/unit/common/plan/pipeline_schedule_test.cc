// SPDX-License-Identifier: Apache-2.0
// Counts what the schedules promise, on a simulated clock.
#include "common/plan/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tributary {
namespace {

using Kind = PipelineTask::Kind;
using Tasks = std::vector<PipelineTask>;
using Times = std::vector<std::vector<std::optional<int64_t>>>;

constexpr PipelineSchedule kSchedules[] = {
    PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward};

struct Durations {
  int64_t forward, backward;
};
constexpr Durations kDurations[] = {{1, 2}, {1, 1}};

// A pipeline whose messages take no time but need a place at the receiver: a
// stage that has computed goes on only when its message has one. Places are
// free again when the receiver's backward pass of that micro-batch is done.
class Simulation {
 public:
  // `input_places(s)` are the places of stage s; all have `gradient_places`.
  Simulation(std::vector<Tasks> tasks, int micro_batches, Durations durations,
             std::function<int(int stage)> input_places, int gradient_places)
      : tasks_(std::move(tasks)),
        durations_(durations),
        input_places_(std::move(input_places)),
        gradient_places_(gradient_places),
        inputs_(tasks_.size(),
                std::vector<std::optional<int64_t>>(micro_batches)),
        gradients_(inputs_),
        backward_done_(inputs_),
        at_(tasks_.size()),
        computed_(tasks_.size()),
        now_(tasks_.size()) {
    for (auto& input : inputs_.front()) input = 0;
    bool moved = true;
    while (moved) {
      moved = false;
      for (int s = 0; s < stages(); ++s) {
        while (Advance(s)) moved = true;
      }
    }
  }

  bool finished() const {
    for (int s = 0; s < stages(); ++s) {
      if (at_[s] < tasks_[s].size()) return false;
    }
    return true;
  }
  int64_t end() const { return *std::max_element(now_.begin(), now_.end()); }

 private:
  int stages() const { return static_cast<int>(tasks_.size()); }

  // Does half a task of stage s: computes, or hands on what was computed.
  bool Advance(int s) {
    if (at_[s] == tasks_[s].size()) return false;
    const PipelineTask task = tasks_[s][at_[s]];
    return computed_[s] ? HandOn(s, task) : Compute(s, task);
  }

  bool Compute(int s, PipelineTask task) {
    const int i = task.micro_batch;
    const bool forward = task.kind == Kind::kForward;
    const bool at_end = !forward && s == stages() - 1;  // needs no message
    const std::optional<int64_t> ready =
        at_end ? now_[s] : (forward ? inputs_ : gradients_)[s][i];
    if (!ready) return false;
    now_[s] = std::max(now_[s], *ready) +
              (forward ? durations_.forward : durations_.backward);
    if (!forward) backward_done_[s][i] = now_[s];
    computed_[s] = true;
    return true;
  }

  bool HandOn(int s, PipelineTask task) {
    const int i = task.micro_batch;
    const bool forward = task.kind == Kind::kForward;
    const int to = forward ? s + 1 : s - 1;
    if (to >= 0 && to < stages()) {
      const int places = forward ? input_places_(to) : gradient_places_;
      if (i >= places) {
        const std::optional<int64_t> free = backward_done_[to][i - places];
        if (!free) return false;
        now_[s] = std::max(now_[s], *free);
      }
      (forward ? inputs_ : gradients_)[to][i] = now_[s];
    }
    computed_[s] = false;
    ++at_[s];
    return true;
  }

  const std::vector<Tasks> tasks_;
  const Durations durations_;
  const std::function<int(int)> input_places_;
  const int gradient_places_;
  Times inputs_, gradients_, backward_done_;  // [stage][micro-batch]
  std::vector<size_t> at_;                    // the task of each stage
  std::vector<bool> computed_;
  std::vector<int64_t> now_;
};

std::vector<Tasks> AllStages(PipelineSchedule schedule, int p, int m) {
  std::vector<Tasks> tasks;
  for (int s = 0; s < p; ++s) {
    tasks.push_back(MakePipelineTasks(schedule, s, p, m));
  }
  return tasks;
}

// (schedule, p, m) for p in 1..6, m in 1..12.
void ForEach(
    const std::function<void(PipelineSchedule schedule, int p, int m)>& body) {
  for (PipelineSchedule schedule : kSchedules) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 12; ++m) body(schedule, p, m);
    }
  }
}

TEST(PipelineScheduleTest, EveryMicroBatchGoesForwardThenBackwardOnce) {
  ForEach([](PipelineSchedule schedule, int p, int m) {
    for (int s = 0; s < p; ++s) {
      int forward = 0, backward = 0;  // in order, so that messages are, too
      for (const PipelineTask& task : MakePipelineTasks(schedule, s, p, m)) {
        if (task.kind == Kind::kForward) {
          EXPECT_EQ(task.micro_batch, forward++);
        } else {
          EXPECT_EQ(task.micro_batch, backward++);
          EXPECT_LE(backward, forward);
        }
      }
      EXPECT_EQ(forward, m);
      EXPECT_EQ(backward, m);
    }
  });
}

TEST(PipelineScheduleTest, ActivationsInFlightAreMOrAtMostTheStagesLeft) {
  ForEach([](PipelineSchedule schedule, int p, int m) {
    for (int s = 0; s < p; ++s) {
      int in_flight = 0, most = 0;
      for (const PipelineTask& task : MakePipelineTasks(schedule, s, p, m)) {
        in_flight += task.kind == Kind::kForward ? 1 : -1;
        most = std::max(most, in_flight);
      }
      EXPECT_EQ(most,
                schedule == PipelineSchedule::kGpipe ? m : std::min(p - s, m))
          << "p " << p << " m " << m << " s " << s;
      EXPECT_EQ(most, ActivationsInFlight(schedule, s, p, m));
    }
  });
}

// A step takes (m + p - 1) (f + b) where a stage computes m (f + b): (p - 1) /
// (m + p - 1) of the step is idle. Blocking sends cost nothing when there is
// one place more than there are activations, and two for gradients.
TEST(PipelineScheduleTest, TheBubbleIsThePapers) {
  for (const Durations& d : kDurations) {
    ForEach([&d](PipelineSchedule schedule, int p, int m) {
      const Simulation run(
          AllStages(schedule, p, m), m, d,
          [=](int s) { return ActivationsInFlight(schedule, s, p, m) + 1; },
          /*gradient_places=*/2);
      ASSERT_TRUE(run.finished()) << "deadlock: p " << p << " m " << m;
      EXPECT_EQ(run.end(), (m + p - 1) * (d.forward + d.backward))
          << "p " << p << " m " << m;
    });
  }
}

TEST(PipelineScheduleTest, NothingDeadlocksWithoutAPlaceToSpare) {
  ForEach([](PipelineSchedule schedule, int p, int m) {
    const Simulation run(
        AllStages(schedule, p, m), m, {1, 2},
        [=](int s) { return ActivationsInFlight(schedule, s, p, m); },
        /*gradient_places=*/1);
    EXPECT_TRUE(run.finished()) << "p " << p << " m " << m;
  });
}

TEST(PipelineScheduleTest, FewerPlacesThanActivationsAreADeadlock) {
  // Otherwise the simulation would not see deadlocks: the first of 3 stages
  // under 1F1B goes backward only when it has sent 3 activations on.
  const Simulation run(
      AllStages(PipelineSchedule::kOneForwardOneBackward, 3, 6), 6, {1, 2},
      [](int) { return 0 + 1; }, /*gradient_places=*/1);
  EXPECT_FALSE(run.finished());
}

TEST(PipelineScheduleTest, TheFirstOfThreeStagesDoesThis) {
  const auto text = [](const Tasks& tasks) {
    std::string all;
    for (const PipelineTask& task : tasks) {
      all += task.kind == Kind::kForward ? 'F' : 'B';
      all += std::to_string(task.micro_batch);
    }
    return all;
  };
  EXPECT_EQ(text(MakePipelineTasks(PipelineSchedule::kOneForwardOneBackward, 0,
                                   3, 4)),
            "F0F1F2B0F3B1B2B3");
  EXPECT_EQ(text(MakePipelineTasks(PipelineSchedule::kGpipe, 0, 3, 4)),
            "F0F1F2F3B0B1B2B3");
  EXPECT_EQ(text(MakePipelineTasks(PipelineSchedule::kOneForwardOneBackward, 2,
                                   3, 4)),
            "F0B0F1B1F2B2F3B3");
}

}  // namespace
}  // namespace tributary
