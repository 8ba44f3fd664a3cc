// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "kernels/nccl_comm.h"
#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/group_watch.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {

// Collectives of arrays on CUDA devices over NCCL, from device to device. A
// call starts after all earlier work of the device's Ops and returns when its
// result is complete, as on the host, so each error belongs to its call.
//
// NCCL does not report that a rank is gone and would wait for it forever. A
// mesh of host connections between the same ranks finds the lost rank
// (GroupWatch).
//
// Sums have the same bits on every rank, but NCCL does not add in rank order
// (docs/decisions/nccl-adds-as-it-likes.md).
class NcclCommunicator final : public Communicator {
 public:
  struct Timeouts {
    absl::Duration call = absl::Seconds(120);
    absl::Duration connect = absl::Seconds(120);
    // How long the destructor waits for the other ranks before it aborts.
    absl::Duration leave = absl::Seconds(5);
    // How long a failed call waits to learn which rank was lost.
    absl::Duration explain = absl::Seconds(1);
    // Grace period for ranks that started to wait later than this one: after a
    // timeout, how long this rank waits for their answers.
    absl::Duration skew = absl::Seconds(10);
  };
  struct Options {
    std::unique_ptr<NcclApi> api;  // on the device of `ops`
    Ops* ops = nullptr;            // must outlive the communicator
    std::unique_ptr<Mesh> mesh;    // between the same ranks
    ExchangeBytes exchange;        // used while connecting
    // Whether to create a communicator of two ranks for each direction between
    // any two ranks. StartSend and StartReceive need it.
    bool messages = false;
    Timeouts timeouts;
    std::vector<int> ranks;  // as in PeerCommunicator
    const Clock* clock = &Clock::Real();
    std::function<void()> pause;  // as in NcclComm
  };

  // Errors are those of a call and of `exchange`.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Connect(
      Options options);
  // Waits until the other ranks have nothing in flight, then closes.
  ~NcclCommunicator() override;

  int rank() const override { return watch_.rank(); }
  int size() const override { return watch_.size(); }
  const char* backend() const override { return "nccl"; }
  absl::Status Broadcast(float* data, int64_t n, int root) override;
  absl::Status AllReduce(float* data, int64_t n,
                         absl::Span<const float> weights) override;
  absl::Status ReduceScatter(float* data, absl::Span<const int64_t> bounds,
                             absl::Span<const float> weights) override;
  absl::Status AllGather(float* data,
                         absl::Span<const int64_t> bounds) override;
  // A send starts at once. A receive starts only when this rank waits for it or
  // for a send, because a pending NCCL call takes part of the device away from
  // computation.
  std::unique_ptr<PendingTransfer> StartSend(const float* data, int64_t n,
                                             int to) override;
  std::unique_ptr<PendingTransfer> StartReceive(float* data, int64_t n,
                                                int from) override;
  void Abort(const std::string& why) override;
  // -1 in a collective of more than two ranks, because NCCL does not tell which
  // rank it waits for. In a broadcast, receivers wait for the root.
  int waiting_for() const override { return waiting_for_; }
  // The bytes that a direct exchange would move (PeerCommunicator). NCCL's
  // algorithms decide how many bytes really move.
  uint64_t bytes_sent() const override { return bytes_sent_; }
  uint64_t bytes_received() const override { return bytes_received_; }

 private:
  class Transfer;
  // The communicators for both directions between this rank and another.
  struct Pair {
    std::unique_ptr<NcclComm> send;
    std::unique_ptr<NcclComm> receive;
    std::deque<Transfer*> receives;  // started, but not enqueued yet
  };

  explicit NcclCommunicator(Options options);
  absl::Status ConnectAll();
  // The IDs that this rank sends to the others, and how many IDs a rank sends.
  absl::StatusOr<std::string> NameWays();
  int WaysFrom(int rank) const;
  absl::Status ConnectPairs(const std::vector<std::string>& ids);
  absl::Status ConnectOne(int rank, int size, const NcclId& id,
                          std::unique_ptr<NcclComm>* made);
  // Converts the outcome of the call `what`. A failure ends the whole group.
  absl::Status StatusOf(const NcclOutcome& outcome, const char* what);
  absl::Status Explain(const NcclOutcome& outcome, const char* what);
  // Fails when no call may start: with Cancelled, the first error, or a fault
  // of the device.
  absl::Status Ready();
  // Ends the whole group with this error.
  absl::Status EndWith(absl::Status status);
  // Polled while a call is in progress.
  bool GiveUp();
  void Scale(float* data, int64_t n, absl::Span<const float> weights);
  void BeginReceives(int peer, const Transfer* last);
  void BeginAllReceives();
  void Count(int64_t sent, int64_t received);
  // The only rank that a collective can wait for; -1 when there are several.
  int TheOther() const {
    return size() == 2 ? JobRank(options_.ranks, 1 - rank()) : -1;
  }

  Options options_;
  GroupWatch watch_;
  float* scratch_ = nullptr;  // device memory for ConnectPairs
  std::unique_ptr<NcclComm> group_;
  std::vector<Pair> pairs_;  // [rank]
  bool connected_ = false;
  absl::Status status_;  // the first error
  int64_t lost_since_ = -1;
  std::atomic<int> waiting_for_ = -1;
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;

  std::atomic<bool> aborted_ = false;
  absl::Mutex mu_;
  std::string why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
