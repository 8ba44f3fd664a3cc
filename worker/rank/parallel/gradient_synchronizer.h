// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/rank_progress.h"

namespace tributary {

// Combines the gradients of all data-parallel ranks into one update of one
// model and brings the new weights back, over a parameter server or by
// all-reduce. For one thread, except Cancel.
class GradientSynchronizer {
 public:
  struct Traffic {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t retries = 0;  // messages sent again
  };
  // Work of a step outside of the calling thread, timed by Clock::Real().
  struct Span {
    bool optimizer = false;  // updating weights here, else communicating
    int64_t begin_micros = 0;
    int64_t end_micros = 0;
  };

  virtual ~GradientSynchronizer() = default;

  // One host array per parameter.
  using Weights = std::vector<std::vector<float>>;
  using MakeWeights = std::function<absl::StatusOr<Weights>()>;

  using OnProgress = std::function<void(const RankProgress&)>;

  // Loads the starting weights into the model and returns the number of steps
  // that this rank has finished: 0, or those of an earlier process of the rank.
  // If there are no weights yet, `initial` makes them on rank 0; on other ranks
  // `initial` is empty. Calls on_progress before it waits for a step of other
  // ranks, because these may be waiting for that call.
  virtual absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                        const OnProgress& on_progress) = 0;

  // One step: BeginStep, GradientReady for every parameter in any order,
  // FinishStep. step: steps finished so far, from 0. samples: the samples of
  // this rank's mean gradient; with 0 the gradient does not count.
  virtual void BeginStep(int64_t step, uint64_t samples) = 0;
  // The parameter's gradient is final, and its weight is not read any more.
  virtual void GradientReady(int parameter) = 0;
  // Returns when the weights for the next step are in the model. The result is
  // the number of steps that this rank has finished: one more, or several more
  // if the other ranks did not wait for it.
  virtual absl::StatusOr<int64_t> FinishStep() = 0;

  // Waits until the exchange of all finished steps is complete. Call it between
  // steps, before a wait for other ranks, if FinishStep leaves something to be
  // exchanged during the next step.
  virtual absl::Status Settle() { return absl::OkStatus(); }
  // If the model's weights are late: ShowNewest loads those after the last
  // finished step, and HideNewest the late ones again. Call both between steps.
  virtual absl::Status ShowNewest() { return absl::OkStatus(); }
  virtual absl::Status HideNewest() { return absl::OkStatus(); }

  // Hands over this rank's part of a checkpoint of `step`, unless it has done
  // so already. All ranks have finished the step and begin no other one
  // meanwhile. `best`: these weights are the best so far
  // (Checkpointer::SetBest).
  virtual absl::Status Checkpoint(int64_t /*step*/, bool /*best*/) {
    return absl::OkStatus();
  }
  // Does the same after the job's last step, if that step leaves a checkpoint.
  // The newest weights are in the model then.
  virtual absl::Status End(int64_t /*step*/) { return absl::OkStatus(); }

  // Sets the learning rates of the next steps, as in PushPullRequest; empty:
  // those of the job's schedule.
  virtual void SetLearningRates(const std::vector<double>& /*rates*/) {}
  // True when the last finished step changed nothing, because a gradient was
  // not finite.
  virtual bool skipped() const { return false; }

  // For tests: waits until the servers have all parts of the current step.
  virtual absl::Status WaitUntilPushed() { return absl::OkStatus(); }

  // Ends the current wait. May be called from any thread.
  virtual void Cancel(const std::string& why) = 0;
  virtual Traffic traffic() const = 0;
  // The spans of the last finished step, in any order. They may overlap.
  virtual std::vector<Span> spans() const { return {}; }
};

}  // namespace tributary
