#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
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

  virtual ~GradientSynchronizer() = default;

  // Gives every rank the same weights to start from. `initial`: one host
  // tensor per parameter, given by rank 0 and empty on the others.
  virtual absl::Status Start(absl::Span<const float* const> initial) = 0;

  // A step: Begin, GradientReady for every parameter in any order, Finish.
  // step: steps finished so far, from 0. samples: those behind this rank's mean
  // gradient; with 0 the gradient does not count.
  virtual void BeginStep(int64_t step, uint64_t samples) = 0;
  // The model's gradient is final and its weight not read any more.
  virtual void GradientReady(int parameter) = 0;
  // Returns with the new weights in the model.
  virtual absl::Status FinishStep() = 0;

  // Ends a wait under way, from any thread.
  virtual void Cancel(const std::string& why) = 0;
  virtual Traffic traffic() const = 0;
};

}  // namespace tributary
