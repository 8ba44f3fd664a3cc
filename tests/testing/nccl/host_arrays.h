// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/device_array.h"

namespace tributary::testing {

// Lets tests call a communicator for device arrays with host arrays, so that
// the same tests apply to host and device.
class HostArrays final : public Communicator {
 public:
  HostArrays(Ops* ops, std::unique_ptr<Communicator> group)
      : ops_(ops), group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const char* backend() const override { return group_->backend(); }
  absl::Status Broadcast(float* data, int64_t n, int root) override {
    return Through(data, n,
                   [&](float* d) { return group_->Broadcast(d, n, root); });
  }
  absl::Status AllReduce(float* data, int64_t n,
                         absl::Span<const float> weights) override {
    return Through(data, n,
                   [&](float* d) { return group_->AllReduce(d, n, weights); });
  }
  absl::Status ReduceScatter(float* data, absl::Span<const int64_t> bounds,
                             absl::Span<const float> weights) override {
    return Through(data, bounds.back(), [&](float* d) {
      return group_->ReduceScatter(d, bounds, weights);
    });
  }
  absl::Status AllGather(float* data,
                         absl::Span<const int64_t> bounds) override {
    return Through(data, bounds.back(),
                   [&](float* d) { return group_->AllGather(d, bounds); });
  }
  std::unique_ptr<PendingTransfer> StartSend(const float* data, int64_t n,
                                             int to) override {
    auto transfer = std::make_unique<Transfer>(ops_, In(data, n), n);
    transfer->under_way = group_->StartSend(transfer->array.data(), n, to);
    return transfer;
  }
  std::unique_ptr<PendingTransfer> StartReceive(float* data, int64_t n,
                                                int from) override {
    auto transfer = std::make_unique<Transfer>(ops_, In(data, n), n);
    transfer->target = data;
    transfer->under_way = group_->StartReceive(transfer->array.data(), n, from);
    return transfer;
  }
  void Abort(const std::string& why) override { group_->Abort(why); }
  int waiting_for() const override { return group_->waiting_for(); }
  uint64_t bytes_sent() const override { return group_->bytes_sent(); }
  uint64_t bytes_received() const override { return group_->bytes_received(); }

 private:
  using Array = DeviceArray<float>;
  struct Transfer final : PendingTransfer {
    Transfer(Ops* o, Array a, int64_t n)
        : ops(o), array(std::move(a)), size(n) {}
    absl::Status Wait() override {
      const absl::Status status = under_way->Wait();
      if (status.ok() && target != nullptr) {
        ops->CopyOut(target, array.data(), size * sizeof(float));
      }
      return status;
    }
    Ops* ops;
    Array array;
    int64_t size;
    float* target = nullptr;
    std::unique_ptr<PendingTransfer> under_way;
  };

  Array In(const float* data, int64_t n) {
    Array array = *Array::Allocate(ops_, n);
    ops_->CopyIn(array.data(), data, n * sizeof(float));
    return array;
  }
  template <typename Call>
  absl::Status Through(float* data, int64_t n, Call call) {
    Array array = In(data, n);
    const absl::Status status = call(array.data());
    if (status.ok()) ops_->CopyOut(data, array.data(), n * sizeof(float));
    return status;
  }

  Ops* const ops_;
  const std::unique_ptr<Communicator> group_;
};

}  // namespace tributary::testing
