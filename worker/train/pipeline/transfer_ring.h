// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/status/status_macros.h"
#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/device_array.h"

namespace tributary {

// A ring of n buffers of one size. Message i uses buffer i % n, once the
// previous message in it is no longer needed.
class TransferRing {
 public:
  TransferRing() = default;

  // ResourceExhausted: not enough memory.
  static absl::StatusOr<TransferRing> Allocate(Ops* ops, int places,
                                               int64_t floats) {
    TransferRing ring;
    TRIBUTARY_ASSIGN_OR_RETURN(
        ring.memory_, DeviceArray<float>::Allocate(ops, places * floats));
    ring.floats_ = floats;
    ring.transfers_.resize(places);
    return ring;
  }

  int places() const { return static_cast<int>(transfers_.size()); }
  float* at(int64_t i) const { return memory_.data() + i % places() * floats_; }
  std::unique_ptr<PendingTransfer>* transfer(int64_t i) {
    return &transfers_[i % places()];
  }
  // Gives up the transfers in flight.
  void Clear() {
    for (auto& transfer : transfers_) transfer.reset();
  }

 private:
  DeviceArray<float> memory_;
  int64_t floats_ = 0;
  std::vector<std::unique_ptr<PendingTransfer>> transfers_;
};

}  // namespace tributary
