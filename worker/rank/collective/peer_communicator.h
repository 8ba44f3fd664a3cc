// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/plan/collective_messages.h"
#include "kernels/ops.h"
#include "worker/rank/collective/communicator.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {

// Collectives in host memory over a mesh. Reductions are direct: rank r
// receives the parts of its range from all ranks, adds them in rank order and
// sends the sum to all, in pieces, so that adding and sending overlap. Each
// rank sends and receives 2 (W - 1) / W of the array, as in a ring, but in 2
// rounds instead of 2 (W - 1), and the result equals a parameter server's, bit
// for bit. Small arrays go to all ranks in one round.
//
// A rank that gives up on another rank tells the others which one before it
// disconnects, so that all ranks name the rank that failed first.
class PeerCommunicator final : public Communicator {
 public:
  struct Options {
    std::unique_ptr<Mesh> mesh;
    Ops* ops = nullptr;  // of the host; must outlive the communicator
    absl::Duration timeout = absl::Seconds(120);  // for each wait
    int64_t piece_elements = kPieceElements;
    int64_t small_elements = kSmallElements;
    // The job's numbers of the ranks, for messages and waiting_for; empty: 0,
    // 1, and so on.
    std::vector<int> ranks;
  };

  explicit PeerCommunicator(Options options);

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }
  const char* backend() const override { return mesh_->backend(); }
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
  void Abort(const std::string& why) override { mesh_->Abort(why); }
  int waiting_for() const override { return waiting_for_; }
  uint64_t bytes_sent() const override { return bytes_sent_; }
  uint64_t bytes_received() const override { return bytes_received_; }

 private:
  class SingleTransfer;
  struct Pending {
    std::unique_ptr<Mesh::Operation> operation;
    int peer;
  };
  using Operations = std::vector<Pending>;
  // The two rounds of a collective.
  enum Round : uint64_t { kScatter = 0, kGather = 1 };

  // The tag of a message of the current collective: its call, round and piece.
  uint64_t Tag(Round round, int64_t piece) const;
  void Send(int to, uint64_t tag, const float* data, int64_t n,
            Operations* operations);
  void Receive(int from, uint64_t tag, float* data, int64_t n,
               Operations* operations);
  // Both split the range into the same pieces.
  void SendRange(int to, Round round, const float* data, int64_t n,
                 Operations* operations);
  void ReceiveRange(int from, Round round, float* data, int64_t n,
                    Operations* operations);
  absl::Status WaitAll(Operations& operations);
  absl::Status Wait(Mesh::Operation& operation, int peer);
  absl::Status InRanksOfTheJob(const absl::Status& status, int peer) const;
  // Turns a failed wait for `peer` into an error that names the first failed
  // rank.
  absl::Status Blame(const absl::Status& status, int peer);
  void TellOthers(int lost);
  absl::Duration FarewellTimeout() const {
    return std::min(timeout_, absl::Seconds(1));
  }

  absl::Status Reduce(float* data, absl::Span<const int64_t> bounds,
                      absl::Span<const float> weights, bool gather);
  absl::Status ReduceSmall(float* data, int64_t n,
                           absl::Span<const float> weights);
  // parts: by rank. `sum` may be this rank's part.
  void Sum(const std::vector<const float*>& parts, int64_t n,
           absl::Span<const float> weights, float* sum);
  void Gather(float* data, absl::Span<const int64_t> bounds,
              Operations* operations);
  // The i-th other rank. Each rank starts with a different one, so that the
  // ranks do not all use the same link at once.
  int Peer(int i) const { return (rank() + i) % size(); }

  const std::unique_ptr<Mesh> mesh_;
  Ops* const ops_;
  const absl::Duration timeout_;
  const int64_t piece_;
  const int64_t small_;
  const std::vector<int> ranks_;
  const std::vector<float> ones_;
  uint64_t calls_ = 0;
  std::vector<uint64_t> sent_;      // messages to each rank
  std::vector<uint64_t> received_;  // messages from each rank
  std::vector<int32_t> lost_;       // by rank: the rank it gave up on
  std::vector<std::unique_ptr<Mesh::Operation>> farewells_;  // by rank
  int32_t told_ = -1;  // the rank that this rank gave up on
  std::vector<float> received_parts_;
  std::vector<float> tile_;
  std::atomic<int> waiting_for_ = -1;
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
};

}  // namespace tributary
