// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"

namespace tributary {

// Exchanges a device's arrays by copying them to host memory, for devices
// without a faster connection. The host communicator computes the sums, so
// their bits do not depend on the device.
class StagedCommunicator final : public Communicator {
 public:
  struct Options {
    std::unique_ptr<Communicator> host;
    Ops* ops = nullptr;  // the arrays' device; must outlive the communicator
  };
  explicit StagedCommunicator(Options options);

  int rank() const override { return options_.host->rank(); }
  int size() const override { return options_.host->size(); }
  const char* backend() const override { return options_.host->backend(); }
  absl::Status Broadcast(float* data, int64_t n, int root) override;
  absl::Status AllReduce(float* data, int64_t n,
                         absl::Span<const float> weights) override;
  absl::Status ReduceScatter(float* data, absl::Span<const int64_t> bounds,
                             absl::Span<const float> weights) override;
  absl::Status AllGather(float* data,
                         absl::Span<const int64_t> bounds) override;
  std::unique_ptr<PendingTransfer> StartSend(const float* data, int64_t n,
                                             int to) override;
  std::unique_ptr<PendingTransfer> StartReceive(float* data, int64_t n,
                                                int from) override;
  void Abort(const std::string& why) override { options_.host->Abort(why); }
  int waiting_for() const override { return options_.host->waiting_for(); }
  uint64_t bytes_sent() const override { return options_.host->bytes_sent(); }
  uint64_t bytes_received() const override {
    return options_.host->bytes_received();
  }

 private:
  class Transfer;

  // Copies elements [begin, end) of `data` to the same indices of `host`, or
  // back.
  absl::Status Out(const float* data, int64_t begin, int64_t end, float* host);
  void In(const float* host, int64_t begin, int64_t end, float* data);
  float* Host(int64_t n);

  const Options options_;
  std::vector<float> host_;
};

}  // namespace tributary
