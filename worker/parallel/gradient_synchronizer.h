#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tributary {

// Makes every data-parallel rank's gradient count in one update of one model,
// and brings the new weights back: over a parameter server here, by all-reduce
// elsewhere. For one thread, but for Cancel.
class GradientSynchronizer {
 public:
  struct Traffic {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t retries = 0;  // messages sent again
  };
  // What went on in a step beside the calling thread, by Clock::Real().
  struct Span {
    bool optimizer = false;  // updating weights here, else communicating
    int64_t begin_micros = 0;
    int64_t end_micros = 0;
  };

  virtual ~GradientSynchronizer() = default;

  // One host tensor per parameter.
  using Weights = std::vector<std::vector<float>>;
  using MakeWeights = std::function<absl::StatusOr<Weights>()>;

  // Where a rank goes on: the steps that it has finished, and those of which a
  // process before it has sent a part at least.
  struct Position {
    int64_t finished = 0;
    int64_t begun = 0;
  };
  using OnPosition = std::function<void(const Position&)>;

  // Brings the weights to start from into the model and returns the steps that
  // this rank has finished: 0, or where a process before it has come to. When
  // nobody has weights yet they are `initial`'s, which rank 0 gives; the other
  // ranks give none. `on_position` is told before anything waits for a step of
  // the others, who may wait to hear of it.
  virtual absl::StatusOr<int64_t> Start(const MakeWeights& initial,
                                        const OnPosition& on_position) = 0;

  // A step: Begin, GradientReady for every parameter in any order, Finish.
  // step: steps finished so far, from 0. samples: those behind this rank's mean
  // gradient; with 0 the gradient does not count.
  virtual void BeginStep(int64_t step, uint64_t samples) = 0;
  // The model's gradient is final and its weight not read any more.
  virtual void GradientReady(int parameter) = 0;
  // Returns with the new weights in the model, and how many steps this rank has
  // finished: one more, or several where the others did not wait for it.
  virtual absl::StatusOr<int64_t> FinishStep() = 0;

  // For tests: waits until every part of the step under way has arrived.
  virtual absl::Status WaitUntilPushed() { return absl::OkStatus(); }

  // Ends a wait under way, from any thread.
  virtual void Cancel(const std::string& why) = 0;
  virtual Traffic traffic() const = 0;
  // Of the step that has finished last, in any order; they may overlap.
  virtual std::vector<Span> spans() const { return {}; }
};

}  // namespace tributary
