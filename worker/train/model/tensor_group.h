// SPDX-License-Identifier: Apache-2.0
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

// The exchanges between the layers of one model and those of the ranks that
// hold its other parts. All ranks make the same calls in the same order, since
// their models are parts of one. Layers cannot return errors, so the group
// keeps the first error. From then on every call does nothing and the layers'
// results are invalid: check status() before using them. For one thread.
class TensorGroup {
 public:
  struct Options {
    Ops* ops = nullptr;  // the model's; must outlive the group
    // Between exactly these ranks, for arrays on the device of `ops`; must
    // outlive the group.
    Communicator* communicator = nullptr;
    const Clock* clock = &Clock::Real();
  };
  // The time that this rank spent in an exchange, in microseconds of the clock.
  struct Exchange {
    int64_t begin_micros = 0;
    int64_t end_micros = 0;
  };

  explicit TensorGroup(const Options& options);

  int rank() const;
  int size() const;

  // Replaces `data` by the sum over all ranks, with the same bits on each rank.
  void AllReduce(int64_t n, float* data);
  // Rank r contributes elements [bounds[r], bounds[r + 1]); all ranks get all.
  void AllGather(absl::Span<const int64_t> bounds, float* data);
  // AllReduce for data in host memory, on any device.
  void AllReduceOnHost(int64_t n, float* data);

  // The first error, which names the missing rank.
  const absl::Status& status() const { return status_; }

  // Returns the exchanges since the last call, in order.
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

// The outputs that this rank computes: all of them without a group.
struct OutputCut {
  TensorGroup* group = nullptr;
  ClassRange range;
};

}  // namespace tributary
