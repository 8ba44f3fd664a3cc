#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
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

 private:
  void Record(const char* what, const absl::Status& status);

  const Options options_;
  absl::Status status_;
};

// Which outputs of a model this rank computes: all of them without a group.
struct OutputCut {
  TensorGroup* group = nullptr;
  ClassRange range;
};

}  // namespace tributary
