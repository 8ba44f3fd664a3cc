// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/peer_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Elements summed at a time, so that tiles of a few parts fit in the L2 cache.
constexpr int64_t kTile = 16 * 1024;
// Tags of StartSend and StartReceive; the tags of collectives are lower.
constexpr uint64_t kSingle = uint64_t{1} << 63;
constexpr int kPieceBits = 24;
// Tag of the last message to each rank, sent only after a failure. It arrives
// at once, since every rank posts its receive from the start.
constexpr uint64_t kFarewell = ~uint64_t{0};

}  // namespace

class PeerCommunicator::SingleTransfer final : public PendingTransfer {
 public:
  SingleTransfer(PeerCommunicator* group, Operations operations)
      : group_(group), operations_(std::move(operations)) {}
  absl::Status Wait() override { return group_->WaitAll(operations_); }

 private:
  PeerCommunicator* const group_;
  Operations operations_;  // one, or none when there is nothing to move
};

std::vector<int64_t> EvenBounds(int64_t n, int parts) {
  constexpr int64_t kLine = 16;
  const int64_t lines = (n + kLine - 1) / kLine;
  std::vector<int64_t> bounds;
  for (int part = 0; part <= parts; ++part) {
    bounds.push_back(std::min(n, lines * part / parts * kLine));
  }
  return bounds;
}

PeerCommunicator::PeerCommunicator(Options options)
    : mesh_(std::move(options.mesh)),
      ops_(options.ops),
      timeout_(options.timeout),
      piece_(options.piece_elements),
      small_(options.small_elements),
      ranks_(std::move(options.ranks)),
      ones_(mesh_->size(), 1.0f),
      sent_(mesh_->size()),
      received_(mesh_->size()),
      lost_(mesh_->size(), -1),
      farewells_(mesh_->size()),
      tile_(kTile) {
  TRIBUTARY_CHECK(ops_->is_host());
  TRIBUTARY_CHECK(ranks_.empty() || static_cast<int>(ranks_.size()) == size());
  for (int i = 1; i < size(); ++i) {
    farewells_[Peer(i)] = mesh_->Receive(Peer(i), kFarewell, &lost_[Peer(i)],
                                         sizeof(lost_[Peer(i)]));
  }
}

uint64_t PeerCommunicator::Tag(Round round, int64_t piece) const {
  TRIBUTARY_CHECK(piece < int64_t{1} << kPieceBits);
  return (calls_ << (kPieceBits + 1)) | (round << kPieceBits) |
         static_cast<uint64_t>(piece);
}

void PeerCommunicator::Send(int to, uint64_t tag, const float* data, int64_t n,
                            Operations* operations) {
  operations->push_back({mesh_->Send(to, tag, data, n * sizeof(float)), to});
  bytes_sent_ += n * sizeof(float);
}

void PeerCommunicator::Receive(int from, uint64_t tag, float* data, int64_t n,
                               Operations* operations) {
  operations->push_back(
      {mesh_->Receive(from, tag, data, n * sizeof(float)), from});
  bytes_received_ += n * sizeof(float);
}

void PeerCommunicator::SendRange(int to, Round round, const float* data,
                                 int64_t n, Operations* operations) {
  for (int64_t begin = 0; begin < n; begin += piece_) {
    Send(to, Tag(round, begin / piece_), data + begin,
         std::min(piece_, n - begin), operations);
  }
}

void PeerCommunicator::ReceiveRange(int from, Round round, float* data,
                                    int64_t n, Operations* operations) {
  for (int64_t begin = 0; begin < n; begin += piece_) {
    Receive(from, Tag(round, begin / piece_), data + begin,
            std::min(piece_, n - begin), operations);
  }
}

absl::Status PeerCommunicator::WaitAll(Operations& operations) {
  for (const Pending& pending : operations) {
    TRIBUTARY_RETURN_IF_ERROR(Wait(*pending.operation, pending.peer));
  }
  waiting_for_ = -1;
  operations.clear();
  return absl::OkStatus();
}

absl::Status PeerCommunicator::Wait(Mesh::Operation& operation, int peer) {
  waiting_for_ = JobRank(ranks_, peer);
  const absl::Status status = operation.Wait(timeout_);
  return status.ok() ? status : Blame(InRanksOfTheJob(status, peer), peer);
}

// Replaces the rank within the group, which the mesh reports, by the job's.
absl::Status PeerCommunicator::InRanksOfTheJob(const absl::Status& status,
                                               int peer) const {
  absl::string_view text = status.message();
  if (!absl::ConsumePrefix(&text, absl::StrCat("rank ", peer, " "))) {
    return status;
  }
  return absl::Status(status.code(),
                      absl::StrCat("rank ", JobRank(ranks_, peer), " ", text));
}

// A rank that gives up tells the others at once which rank it waited for. This
// follows the chain of blamed ranks to the first silent one, which caused the
// failure.
absl::Status PeerCommunicator::Blame(const absl::Status& status, int peer) {
  if (told_ >= 0 ||
      (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status))) {
    return status;
  }
  TellOthers(peer);
  int lost = peer, says = -1;
  std::vector<bool> asked(size());
  while (!asked[lost]) {
    asked[lost] = true;
    if (!farewells_[lost]->Wait(FarewellTimeout()).ok()) break;
    const int next = lost_[lost];
    if (next < 0 || next >= size() || next == rank()) break;
    says = lost;
    lost = next;
  }
  if (lost == peer) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("rank ", JobRank(ranks_, lost), " is lost, says rank ",
                   JobRank(ranks_, says), " (", status.message(), ")"));
}

void PeerCommunicator::TellOthers(int lost) {
  told_ = lost;
  std::vector<std::unique_ptr<Mesh::Operation>> farewells;
  for (int i = 1; i < size(); ++i) {
    if (Peer(i) == lost) continue;
    farewells.push_back(mesh_->Send(Peer(i), kFarewell, &told_, sizeof(told_)));
  }
  for (auto& farewell : farewells) {  // a lost rank needs no message
    farewell->Wait(FarewellTimeout()).IgnoreError();
  }
}

void PeerCommunicator::Sum(const std::vector<const float*>& parts, int64_t n,
                           absl::Span<const float> weights, float* sum) {
  std::vector<const float*> tiles(parts.size());
  for (int64_t begin = 0; begin < n; begin += kTile) {
    for (size_t r = 0; r < parts.size(); ++r) tiles[r] = parts[r] + begin;
    const int64_t count = std::min(kTile, n - begin);
    ops_->WeightedSum(count, size(), tiles.data(), weights.data(),
                      tile_.data());
    std::memcpy(sum + begin, tile_.data(), count * sizeof(float));
  }
}

absl::Status PeerCommunicator::AllReduce(float* data, int64_t n,
                                         absl::Span<const float> weights) {
  if (n <= small_) return ReduceSmall(data, n, weights);
  return Reduce(data, EvenBounds(n, size()), weights, /*gather=*/true);
}

absl::Status PeerCommunicator::ReduceScatter(float* data,
                                             absl::Span<const int64_t> bounds,
                                             absl::Span<const float> weights) {
  return Reduce(data, bounds, weights, /*gather=*/false);
}

absl::Status PeerCommunicator::ReduceSmall(float* data, int64_t n,
                                           absl::Span<const float> weights) {
  if (n == 0) return absl::OkStatus();
  if (weights.empty()) weights = ones_;
  ++calls_;
  received_parts_.resize(n * size());
  std::vector<const float*> parts(size());
  Operations operations;
  for (int i = 1; i < size(); ++i) {
    float* part = received_parts_.data() + n * Peer(i);
    parts[Peer(i)] = part;
    Receive(Peer(i), Tag(kScatter, 0), part, n, &operations);
  }
  // Sends a copy, because the sum overwrites `data` during the send.
  float* own = received_parts_.data() + n * rank();
  std::memcpy(own, data, n * sizeof(float));
  parts[rank()] = own;
  for (int i = 1; i < size(); ++i) {
    Send(Peer(i), Tag(kScatter, 0), own, n, &operations);
  }
  TRIBUTARY_RETURN_IF_ERROR(WaitAll(operations));
  Sum(parts, n, weights, data);
  return absl::OkStatus();
}

// The sum of a peer's range is received into the memory from which this rank's
// part of it is sent. This is safe: the peer sends a piece of the sum only
// after it has received that piece of the part.
absl::Status PeerCommunicator::Reduce(float* data,
                                      absl::Span<const int64_t> bounds,
                                      absl::Span<const float> weights,
                                      bool gather) {
  TRIBUTARY_CHECK(static_cast<int>(bounds.size()) == size() + 1);
  if (weights.empty()) weights = ones_;
  ++calls_;
  float* own = data + bounds[rank()];
  const int64_t own_size = bounds[rank() + 1] - bounds[rank()];
  received_parts_.resize(own_size * size());

  std::vector<const float*> parts(size());
  parts[rank()] = own;
  std::vector<Operations> arriving((own_size + piece_ - 1) / piece_);
  Operations rest;
  for (int i = 1; i < size(); ++i) {
    const int peer = Peer(i);
    float* part = received_parts_.data() + own_size * peer;
    parts[peer] = part;
    for (size_t p = 0; p < arriving.size(); ++p) {
      const int64_t begin = static_cast<int64_t>(p) * piece_;
      Receive(peer, Tag(kScatter, static_cast<int64_t>(p)), part + begin,
              std::min(piece_, own_size - begin), &arriving[p]);
    }
    const int64_t begin = bounds[peer], n = bounds[peer + 1] - begin;
    SendRange(peer, kScatter, data + begin, n, &rest);
    if (gather) ReceiveRange(peer, kGather, data + begin, n, &rest);
  }
  for (size_t p = 0; p < arriving.size(); ++p) {
    TRIBUTARY_RETURN_IF_ERROR(WaitAll(arriving[p]));
    const int64_t begin = static_cast<int64_t>(p) * piece_;
    const int64_t n = std::min(piece_, own_size - begin);
    std::vector<const float*> piece(size());
    for (int r = 0; r < size(); ++r) piece[r] = parts[r] + begin;
    Sum(piece, n, weights, own + begin);
    for (int i = 1; gather && i < size(); ++i) {
      Send(Peer(i), Tag(kGather, static_cast<int64_t>(p)), own + begin, n,
           &rest);
    }
  }
  return WaitAll(rest);
}

void PeerCommunicator::Gather(float* data, absl::Span<const int64_t> bounds,
                              Operations* operations) {
  for (int i = 1; i < size(); ++i) {
    const int64_t begin = bounds[Peer(i)];
    ReceiveRange(Peer(i), kGather, data + begin, bounds[Peer(i) + 1] - begin,
                 operations);
  }
  const int64_t begin = bounds[rank()];
  for (int i = 1; i < size(); ++i) {
    SendRange(Peer(i), kGather, data + begin, bounds[rank() + 1] - begin,
              operations);
  }
}

absl::Status PeerCommunicator::AllGather(float* data,
                                         absl::Span<const int64_t> bounds) {
  TRIBUTARY_CHECK(static_cast<int>(bounds.size()) == size() + 1);
  ++calls_;
  Operations operations;
  Gather(data, bounds, &operations);
  return WaitAll(operations);
}

// Scatter and gather (van de Geijn 1994): the root sends its array once in
// total, instead of once to every rank.
absl::Status PeerCommunicator::Broadcast(float* data, int64_t n, int root) {
  ++calls_;
  Operations operations;
  if (n <= small_) {
    if (rank() != root) ReceiveRange(root, kScatter, data, n, &operations);
    for (int i = 1; rank() == root && i < size(); ++i) {
      SendRange(Peer(i), kScatter, data, n, &operations);
    }
    return WaitAll(operations);
  }
  const std::vector<int64_t> bounds = EvenBounds(n, size());
  if (rank() == root) {
    for (int i = 1; i < size(); ++i) {
      const int64_t begin = bounds[Peer(i)];
      SendRange(Peer(i), kScatter, data + begin, bounds[Peer(i) + 1] - begin,
                &operations);
    }
  } else {
    const int64_t begin = bounds[rank()];
    ReceiveRange(root, kScatter, data + begin, bounds[rank() + 1] - begin,
                 &operations);
    TRIBUTARY_RETURN_IF_ERROR(WaitAll(operations));
  }
  Gather(data, bounds, &operations);
  return WaitAll(operations);
}

std::unique_ptr<PendingTransfer> PeerCommunicator::StartSend(const float* data,
                                                             int64_t n,
                                                             int to) {
  TRIBUTARY_CHECK(to != rank() && to >= 0 && to < size());
  Operations operations;
  if (n > 0) Send(to, kSingle | sent_[to]++, data, n, &operations);
  return std::make_unique<SingleTransfer>(this, std::move(operations));
}

std::unique_ptr<PendingTransfer> PeerCommunicator::StartReceive(float* data,
                                                                int64_t n,
                                                                int from) {
  TRIBUTARY_CHECK(from != rank() && from >= 0 && from < size());
  Operations operations;
  if (n > 0) Receive(from, kSingle | received_[from]++, data, n, &operations);
  return std::make_unique<SingleTransfer>(this, std::move(operations));
}

}  // namespace tributary
