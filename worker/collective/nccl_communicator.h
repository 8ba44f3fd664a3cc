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
#include "worker/collective/communicator.h"
#include "worker/collective/group_watch.h"
#include "worker/collective/mesh.h"

namespace tributary {

// Collectives of arrays on CUDA devices over NCCL, from device to device. A
// call begins behind what the device's Ops has been asked before, and returns
// when the result is there, as on the host, so every error is its call's.
//
// NCCL does not say that a rank is gone, and waits for it for ever: a mesh of
// host connections between the same ranks says who it is (GroupWatch).
//
// Sums are NCCL's own: the same bits on every rank, though not those of the
// order of the ranks (docs/decisions/nccl-adds-as-it-likes.md).
class NcclCommunicator final : public Communicator {
 public:
  struct Options {
    std::unique_ptr<NcclApi> api;  // on the device of `ops`
    Ops* ops = nullptr;            // outlives the communicator
    std::unique_ptr<Mesh> mesh;    // of the same ranks
    ExchangeBytes exchange;        // while connecting
    // A communicator of two ranks for each direction between any two, without
    // which there is neither StartSend nor StartReceive.
    bool messages = false;
    absl::Duration timeout = absl::Seconds(120);  // of every call
    absl::Duration connect_timeout = absl::Seconds(120);
    // How long the end waits for the others; then it aborts.
    absl::Duration leave_timeout = absl::Seconds(5);
    // How long who failed looks for the rank to blame.
    absl::Duration explain_timeout = absl::Seconds(1);
    // By how much some ranks may begin to wait later than others: who has
    // waited in vain asks them for so long.
    absl::Duration skew = absl::Seconds(10);
    std::vector<int> ranks;  // as PeerCommunicator's
    const Clock* clock = &Clock::Real();
    std::function<void()> pause;  // as NcclComm's
  };

  // Errors as those of a call, and of `exchange`.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Connect(
      Options options);
  // Waits for the others, so that nothing of them is under way, and closes.
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
  absl::Status AllToAll(const float* in, float* out, int64_t n) override;
  // A send is under way at once; a receive when it is waited for, or a send is,
  // since what waits on the device takes part of it from what computes.
  std::unique_ptr<PendingTransfer> StartSend(const float* data, int64_t n,
                                             int to) override;
  std::unique_ptr<PendingTransfer> StartReceive(float* data, int64_t n,
                                                int from) override;
  absl::Status Barrier() override;
  void Abort(const std::string& why) override;
  // Of a collective of more than two ranks NCCL does not know.
  int waiting_for() const override { return waiting_for_; }
  // As a direct exchange moves them (PeerCommunicator); how often NCCL passes
  // them on its algorithms decide.
  uint64_t bytes_sent() const override { return bytes_sent_; }
  uint64_t bytes_received() const override { return bytes_received_; }

 private:
  class Transfer;
  // Both directions between this rank and another.
  struct Pair {
    std::unique_ptr<NcclComm> send;
    std::unique_ptr<NcclComm> receive;
    std::deque<Transfer*> receives;  // started, not under way yet
  };

  explicit NcclCommunicator(Options options);
  absl::Status ConnectAll();
  // What this rank tells the others to connect by, and of how many ways a rank
  // names.
  absl::StatusOr<std::string> NameWays();
  int WaysFrom(int rank) const;
  absl::Status ConnectPairs(const std::vector<std::string>& ids);
  absl::Status ConnectOne(int rank, int size, const NcclId& id,
                          std::unique_ptr<NcclComm>* made);
  // What NCCL made of a call on `what`; a failure ends everything.
  absl::Status StatusOf(const NcclOutcome& outcome, const char* what);
  absl::Status Explain(const NcclOutcome& outcome, const char* what);
  // The first error, a fault of the device among them, or Cancelled: no call
  // may begin.
  absl::Status Ready();
  // This error ends everything.
  absl::Status EndWith(absl::Status status);
  // Asked while a call is under way.
  bool GiveUp();
  void Scale(float* data, int64_t n, absl::Span<const float> weights);
  void BeginReceives(int peer, const Transfer* last);
  void BeginAllReceives();
  void Count(int64_t sent, int64_t received);
  int JobRank(int rank) const { return watch_.JobRank(rank); }
  // Whom a collective waits for, as far as one can say.
  int TheOther() const { return size() == 2 ? JobRank(1 - rank()) : -1; }

  Options options_;
  GroupWatch watch_;
  float* scratch_ = nullptr;  // of the device, for Barrier and ConnectPairs
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
