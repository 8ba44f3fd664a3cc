// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/staged_communicator.h"

#include <utility>

#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {

// A message that is staged in host memory of its own.
class StagedCommunicator::Transfer final : public PendingTransfer {
 public:
  explicit Transfer(int64_t n) : host_(n) {}
  absl::Status Wait() override {
    TRIBUTARY_RETURN_IF_ERROR(status_);
    TRIBUTARY_RETURN_IF_ERROR(under_way_->Wait());
    if (target_ != nullptr) {
      ops_->CopyIn(target_, host_.data(), host_.size() * sizeof(float));
    }
    return absl::OkStatus();
  }

 private:
  friend class StagedCommunicator;
  std::vector<float> host_;
  absl::Status status_;
  Ops* ops_ = nullptr;
  float* target_ = nullptr;                     // where received data goes
  std::unique_ptr<PendingTransfer> under_way_;  // destroyed before host_
};

StagedCommunicator::StagedCommunicator(Options options)
    : options_(std::move(options)) {}

float* StagedCommunicator::Host(int64_t n) {
  if (static_cast<int64_t>(host_.size()) < n) host_.resize(n);
  return host_.data();
}

absl::Status StagedCommunicator::Out(const float* data, int64_t begin,
                                     int64_t end, float* host) {
  if (begin == end) return absl::OkStatus();
  options_.ops->CopyOut(host + begin, data + begin,
                        (end - begin) * sizeof(float));
  // The other ranks must not get the results of a faulty device.
  return SynchronizeDevice(*options_.ops);
}

void StagedCommunicator::In(const float* host, int64_t begin, int64_t end,
                            float* data) {
  if (begin == end) return;
  options_.ops->CopyIn(data + begin, host + begin,
                       (end - begin) * sizeof(float));
}

absl::Status StagedCommunicator::Broadcast(float* data, int64_t n, int root) {
  float* const host = Host(n);
  if (rank() == root) TRIBUTARY_RETURN_IF_ERROR(Out(data, 0, n, host));
  TRIBUTARY_RETURN_IF_ERROR(options_.host->Broadcast(host, n, root));
  if (rank() != root) In(host, 0, n, data);
  return absl::OkStatus();
}

absl::Status StagedCommunicator::AllReduce(float* data, int64_t n,
                                           absl::Span<const float> weights) {
  float* const host = Host(n);
  TRIBUTARY_RETURN_IF_ERROR(Out(data, 0, n, host));
  TRIBUTARY_RETURN_IF_ERROR(options_.host->AllReduce(host, n, weights));
  In(host, 0, n, data);
  return absl::OkStatus();
}

absl::Status StagedCommunicator::ReduceScatter(
    float* data, absl::Span<const int64_t> bounds,
    absl::Span<const float> weights) {
  float* const host = Host(bounds.back());
  TRIBUTARY_RETURN_IF_ERROR(Out(data, 0, bounds.back(), host));
  TRIBUTARY_RETURN_IF_ERROR(
      options_.host->ReduceScatter(host, bounds, weights));
  In(host, bounds[rank()], bounds[rank() + 1], data);
  return absl::OkStatus();
}

absl::Status StagedCommunicator::AllGather(float* data,
                                           absl::Span<const int64_t> bounds) {
  float* const host = Host(bounds.back());
  const int64_t begin = bounds[rank()], end = bounds[rank() + 1];
  TRIBUTARY_RETURN_IF_ERROR(Out(data, begin, end, host));
  TRIBUTARY_RETURN_IF_ERROR(options_.host->AllGather(host, bounds));
  In(host, 0, begin, data);
  In(host, end, bounds.back(), data);
  return absl::OkStatus();
}

std::unique_ptr<PendingTransfer> StagedCommunicator::StartSend(
    const float* data, int64_t n, int to) {
  auto transfer = std::make_unique<Transfer>(n);
  transfer->status_ = Out(data, 0, n, transfer->host_.data());
  if (transfer->status_.ok()) {
    transfer->under_way_ =
        options_.host->StartSend(transfer->host_.data(), n, to);
  }
  return transfer;
}

std::unique_ptr<PendingTransfer> StagedCommunicator::StartReceive(float* data,
                                                                  int64_t n,
                                                                  int from) {
  auto transfer = std::make_unique<Transfer>(n);
  transfer->ops_ = options_.ops;
  transfer->target_ = data;
  transfer->under_way_ =
      options_.host->StartReceive(transfer->host_.data(), n, from);
  return transfer;
}

}  // namespace tributary
