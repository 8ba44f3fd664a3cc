#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "kernels/ops.h"

namespace tributary {

class Communicator;

// What the layers of one model do together with those of the other ranks that
// hold its other parts. All ranks make the same calls in the same order, since
// their models are cut from one. Layers have no way to return an error, so the
// first one is kept: from then on every call does nothing, what the layers
// compute is void, and whoever runs the model asks for status() before using
// it. For one thread.
class TensorGroup {
 public:
  struct Options {
    Ops* ops = nullptr;  // of the model; outlives the group
    // Of these ranks alone, for arrays of that device; outlives the group.
    Communicator* communicator = nullptr;
    const Clock* clock = &Clock::Real();
  };
  // When this rank was in an exchange: microseconds of the clock. With a device
  // that exchanges by itself, when it was told to.
  struct Exchange {
    int64_t begin_micros = 0;
    int64_t end_micros = 0;
  };

  explicit TensorGroup(const Options& options);

  int rank() const;
  int size() const;

  // `data` becomes the sum over all ranks, the same bits on each.
  void AllReduce(int64_t n, float* data);
  // Rank r gives elements [bounds[r], bounds[r + 1]); all get all.
  void AllGather(absl::Span<const int64_t> bounds, float* data);
  // In host memory, whatever the device.
  void AllReduceOnHost(int64_t n, float* data);

  // The first error, which says who is missing.
  const absl::Status& status() const { return status_; }

  // Those since the last call, in order.
  std::vector<Exchange> TakeExchanges() {
    return std::exchange(exchanges_, {});
  }

 private:
  int64_t Now() const { return options_.clock->NowMicros(); }
  void Record(const char* what, const absl::Status& status);

  const Options options_;
  absl::Status status_;
  std::vector<Exchange> exchanges_;
};

// Which outputs of a model this rank computes: all of them without a group.
struct OutputCut {
  TensorGroup* group = nullptr;
  ClassRange range;
};

}  // namespace tributary
