// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/nccl_communicator.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_fault.h"

namespace tributary {
namespace {

// How long data that a lost rank sent before its loss may still arrive.
constexpr int64_t kGraceMicros = 200'000;

}  // namespace

class NcclCommunicator::Transfer final : public PendingTransfer {
 public:
  Transfer(NcclCommunicator* group, NcclComm* comm, int peer)
      : group_(group), comm_(comm), peer_(peer) {}
  // Waits, since a transfer in flight uses the memory until it is done or the
  // group gives up.
  ~Transfer() override {
    if (transfer_ != nullptr) Wait().IgnoreError();
    std::deque<Transfer*>& waiting = group_->pairs_[peer_].receives;
    for (auto i = waiting.begin(); i != waiting.end(); ++i) {
      if (*i != this) continue;
      waiting.erase(i);
      break;
    }
  }

  absl::Status Wait() override {
    TRIBUTARY_RETURN_IF_ERROR(group_->Ready());
    if (comm_ == nullptr) return absl::OkStatus();  // nothing to move
    if (receives_) {
      group_->BeginReceives(peer_, this);
    } else {
      group_->BeginAllReceives();
    }
    group_->waiting_for_ = JobRank(group_->options_.ranks, peer_);
    const NcclOutcome outcome = comm_->Finish(&*transfer_);
    if (outcome.ok()) group_->waiting_for_ = -1;
    return group_->StatusOf(outcome, receives_ ? "a receive" : "a send");
  }

 private:
  friend class NcclCommunicator;
  NcclCommunicator* const group_;
  NcclComm* const comm_;
  const int peer_;
  bool receives_ = false;
  float* target_ = nullptr;
  int64_t n_ = 0;
  std::unique_ptr<NcclComm::Transfer> transfer_;  // once it is under way
};

NcclCommunicator::NcclCommunicator(Options options)
    : options_(std::move(options)),
      watch_(std::move(options_.mesh), options_.ranks),
      pairs_(watch_.size()) {}

absl::StatusOr<std::unique_ptr<NcclCommunicator>> NcclCommunicator::Connect(
    Options options) {
  std::unique_ptr<NcclCommunicator> made(
      new NcclCommunicator(std::move(options)));
  TRIBUTARY_RETURN_IF_ERROR(made->ConnectAll());
  return made;
}

// The IDs of the communicators that this rank creates. Rank 0 creates the
// group's. With messages, every rank creates one per rank that it sends to, in
// rank order; at its own index rank 0 has the group's ID and other ranks a
// blank. Without messages, other ranks send nothing, which keeps the exchange
// of large groups small.
absl::StatusOr<std::string> NcclCommunicator::NameWays() {
  std::string ids;
  for (int to = 0; to < WaysFrom(rank()); ++to) {
    NcclId id = {};
    const bool wanted = to != rank() || rank() == 0;
    if (wanted && options_.api->NewId(&id) == NcclApi::Code::kFailed) {
      return absl::UnavailableError(options_.api->LastError(nullptr));
    }
    ids.append(id.data(), id.size());
  }
  return ids;
}

int NcclCommunicator::WaysFrom(int rank) const {
  return options_.messages ? size() : rank == 0 ? 1 : 0;
}

absl::Status NcclCommunicator::ConnectAll() {
  scratch_ = static_cast<float*>(options_.ops->Allocate(2 * sizeof(float)));
  if (scratch_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room on device ", options_.ops->device_name(), " for a group"));
  }
  options_.ops->Fill(2, 0, scratch_);
  TRIBUTARY_ASSIGN_OR_RETURN(std::string own, NameWays());
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                             options_.exchange(std::move(own)));
  for (int r = 0; r < size(); ++r) {
    const size_t wanted = sizeof(NcclId) * WaysFrom(r);
    const size_t came = static_cast<size_t>(r) < ids.size() ? ids[r].size() : 0;
    if (came == wanted) continue;
    return absl::InternalError(
        absl::StrCat("rank ", JobRank(options_.ranks, r), " sent ", came,
                     " bytes to connect by, wanted ", wanted));
  }
  NcclId id;
  std::memcpy(id.data(), ids[0].data(), id.size());
  TRIBUTARY_RETURN_IF_ERROR(ConnectOne(rank(), size(), id, &group_));
  if (options_.messages) TRIBUTARY_RETURN_IF_ERROR(ConnectPairs(ids));
  connected_ = true;
  return absl::OkStatus();
}

absl::Status NcclCommunicator::ConnectOne(int rank, int size, const NcclId& id,
                                          std::unique_ptr<NcclComm>* made) {
  NcclOutcome outcome;
  *made = NcclComm::Connect(
      {.api = options_.api.get(),
       .rank = rank,
       .size = size,
       .id = id,
       .timeout_micros = absl::ToInt64Microseconds(options_.timeouts.call),
       .connect_micros = absl::ToInt64Microseconds(options_.timeouts.connect),
       .close_micros = absl::ToInt64Microseconds(options_.timeouts.leave),
       .give_up = [this] { return GiveUp(); },
       .clock = options_.clock,
       .pause = options_.pause},
      &outcome);
  return StatusOf(outcome, "connecting");
}

// Connects the pairs in the same order on all ranks, so that no two wait for
// each other in a cycle. The first message connects the two devices, which
// needs both ranks at the same time; later messages do not.
absl::Status NcclCommunicator::ConnectPairs(
    const std::vector<std::string>& ids) {
  for (int from = 0; from < size(); ++from) {
    for (int to = 0; to < size(); ++to) {
      if (from == to || (from != rank() && to != rank())) continue;
      const bool sends = from == rank();
      Pair& pair = pairs_[sends ? to : from];
      std::unique_ptr<NcclComm>& way = sends ? pair.send : pair.receive;
      NcclId id;
      std::memcpy(id.data(), ids[from].data() + id.size() * to, id.size());
      TRIBUTARY_RETURN_IF_ERROR(ConnectOne(sends ? 0 : 1, 2, id, &way));
      NcclComm::Transfer first = sends ? way->BeginSend(scratch_, 1, 1)
                                       : way->BeginReceive(scratch_ + 1, 1, 0);
      TRIBUTARY_RETURN_IF_ERROR(
          StatusOf(way->Finish(&first), "a first message"));
    }
  }
  return absl::OkStatus();
}

NcclCommunicator::~NcclCommunicator() {
  const bool well = group_ != nullptr && status_.ok() && !aborted_ &&
                    watch_.lost().ok() && watch_.Leave(options_.timeouts.leave);
  std::vector<std::unique_ptr<NcclComm>> all;
  all.push_back(std::move(group_));
  for (Pair& pair : pairs_) {
    all.push_back(std::move(pair.send));
    all.push_back(std::move(pair.receive));
  }
  for (const auto& comm : all) {
    if (well && comm != nullptr) comm->BeginClose();
  }
  // If one communicator cannot close, the other ranks give up as well. The rest
  // are then aborted at once.
  for (const auto& comm : all) {
    if (well && comm != nullptr && !comm->Close().ok()) break;
  }
  all.clear();
  if (scratch_ != nullptr) options_.ops->Free(scratch_);
}

void NcclCommunicator::Abort(const std::string& why) {
  absl::MutexLock lock(&mu_);
  if (why_.empty()) why_ = why.empty() ? "aborted" : why;
  aborted_ = true;
}

// Abort does not fail a call that has finished, only the next one.
absl::Status NcclCommunicator::Ready() {
  if (aborted_) {
    return StatusOf({NcclOutcome::Code::kGivenUp, ""}, "a call");
  }
  if (!status_.ok()) return status_;
  // The other ranks must not get the results of a faulty device.
  absl::Status fault = DeviceFault(*options_.ops);
  return fault.ok() ? fault : EndWith(std::move(fault));
}

bool NcclCommunicator::GiveUp() {
  if (aborted_) return true;
  if (watch_.lost().ok()) return false;
  const int64_t now = options_.clock->NowMicros();
  if (lost_since_ < 0) lost_since_ = now;
  return now - lost_since_ >= kGraceMicros;
}

absl::Status NcclCommunicator::StatusOf(const NcclOutcome& outcome,
                                        const char* what) {
  if (outcome.ok() || !status_.ok()) return status_;
  return EndWith(Explain(outcome, what));
}

absl::Status NcclCommunicator::EndWith(absl::Status status) {
  status_ = std::move(status);
  // Stops the group's work on the device, which would otherwise wait forever.
  if (group_ != nullptr) group_->Abort();
  for (Pair& pair : pairs_) {
    if (pair.send != nullptr) pair.send->Abort();
    if (pair.receive != nullptr) pair.receive->Abort();
  }
  return status_;
}

absl::Status NcclCommunicator::Explain(const NcclOutcome& outcome,
                                       const char* what) {
  if (aborted_) {
    absl::MutexLock lock(&mu_);
    return absl::CancelledError(why_);
  }
  switch (outcome.code) {
    case NcclOutcome::Code::kLate: {
      const std::vector<int> silent = watch_.FindSilent(options_.timeouts.skew);
      const std::string time = absl::FormatDuration(
          connected_ ? options_.timeouts.call : options_.timeouts.connect);
      if (silent.empty()) {
        return absl::DeadlineExceededError(absl::StrCat(
            what, " was not done for ", time, ", and all ranks wait for it"));
      }
      return absl::DeadlineExceededError(absl::StrCat(
          silent.size() == 1 ? "rank " : "ranks ", absl::StrJoin(silent, ", "),
          " did not come for ", time, " (", what, ")"));
    }
    case NcclOutcome::Code::kFailed: {
      const absl::Status lost = watch_.AwaitLost(options_.timeouts.explain);
      const std::string text = absl::StrCat(what, ": ", outcome.message);
      if (lost.ok()) return absl::InternalError(text);
      return absl::UnavailableError(
          absl::StrCat(std::string(lost.message()), " (", text, ")"));
    }
    default: {
      const absl::Status lost = watch_.lost();
      return lost.ok() ? absl::CancelledError(outcome.message) : lost;
    }
  }
}

void NcclCommunicator::Count(int64_t sent, int64_t received) {
  bytes_sent_ += sent * sizeof(float);
  bytes_received_ += received * sizeof(float);
}

// Works in place: each element is read and written at the same index.
void NcclCommunicator::Scale(float* data, int64_t n,
                             absl::Span<const float> weights) {
  if (weights.empty() || weights[rank()] == 1.0f) return;
  const float* part = data;
  options_.ops->WeightedSum(n, 1, &part, &weights[rank()], data);
}

absl::Status NcclCommunicator::AllReduce(float* data, int64_t n,
                                         absl::Span<const float> weights) {
  TRIBUTARY_RETURN_IF_ERROR(Ready());
  if (n == 0) return absl::OkStatus();
  Scale(data, n, weights);
  waiting_for_ = TheOther();
  TRIBUTARY_RETURN_IF_ERROR(
      StatusOf(group_->AllReduce(data, n), "an all-reduce"));
  waiting_for_ = -1;
  const int64_t others = 2 * n * (size() - 1) / size();
  Count(others, others);
  return absl::OkStatus();
}

absl::Status NcclCommunicator::ReduceScatter(float* data,
                                             absl::Span<const int64_t> bounds,
                                             absl::Span<const float> weights) {
  TRIBUTARY_CHECK(static_cast<int>(bounds.size()) == size() + 1);
  const int64_t n = bounds.back(), own = bounds[rank() + 1] - bounds[rank()];
  TRIBUTARY_RETURN_IF_ERROR(Ready());
  if (n == 0) return absl::OkStatus();
  Scale(data, n, weights);
  waiting_for_ = TheOther();
  TRIBUTARY_RETURN_IF_ERROR(
      StatusOf(group_->ReduceScatter(data, {bounds.begin(), bounds.end()}),
               "a reduce-scatter"));
  waiting_for_ = -1;
  Count(n - own, own * (size() - 1));
  return absl::OkStatus();
}

absl::Status NcclCommunicator::AllGather(float* data,
                                         absl::Span<const int64_t> bounds) {
  TRIBUTARY_CHECK(static_cast<int>(bounds.size()) == size() + 1);
  const int64_t n = bounds.back(), own = bounds[rank() + 1] - bounds[rank()];
  TRIBUTARY_RETURN_IF_ERROR(Ready());
  if (n == 0) return absl::OkStatus();
  waiting_for_ = TheOther();
  TRIBUTARY_RETURN_IF_ERROR(
      StatusOf(group_->AllGather(data, {bounds.begin(), bounds.end()}),
               "an all-gather"));
  waiting_for_ = -1;
  Count(own * (size() - 1), n - own);
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Broadcast(float* data, int64_t n, int root) {
  TRIBUTARY_RETURN_IF_ERROR(Ready());
  if (n == 0) return absl::OkStatus();
  waiting_for_ = rank() == root ? TheOther() : JobRank(options_.ranks, root);
  TRIBUTARY_RETURN_IF_ERROR(
      StatusOf(group_->Broadcast(data, n, root), "a broadcast"));
  waiting_for_ = -1;
  Count(rank() == root ? n : 0, rank() == root ? 0 : n);
  return absl::OkStatus();
}

std::unique_ptr<PendingTransfer> NcclCommunicator::StartSend(const float* data,
                                                             int64_t n,
                                                             int to) {
  TRIBUTARY_CHECK(options_.messages && to != rank());
  NcclComm* const way = n == 0 ? nullptr : pairs_[to].send.get();
  auto transfer = std::make_unique<Transfer>(this, way, to);
  if (way == nullptr || !Ready().ok()) return transfer;
  transfer->transfer_ =
      std::make_unique<NcclComm::Transfer>(way->BeginSend(data, n, 1));
  Count(n, 0);
  return transfer;
}

std::unique_ptr<PendingTransfer> NcclCommunicator::StartReceive(float* data,
                                                                int64_t n,
                                                                int from) {
  TRIBUTARY_CHECK(options_.messages && from != rank());
  NcclComm* const way = n == 0 ? nullptr : pairs_[from].receive.get();
  auto transfer = std::make_unique<Transfer>(this, way, from);
  transfer->receives_ = true;
  if (way == nullptr || !Ready().ok()) return transfer;
  transfer->target_ = data;
  transfer->n_ = n;
  pairs_[from].receives.push_back(transfer.get());
  Count(0, n);
  return transfer;
}

void NcclCommunicator::BeginReceives(int peer, const Transfer* last) {
  Pair& pair = pairs_[peer];
  if (last != nullptr && last->transfer_ != nullptr) return;
  while (!pair.receives.empty()) {
    Transfer* const next = pair.receives.front();
    pair.receives.pop_front();
    next->transfer_ = std::make_unique<NcclComm::Transfer>(
        pair.receive->BeginReceive(next->target_, next->n_, 0));
    if (next == last) return;
  }
}

void NcclCommunicator::BeginAllReceives() {
  for (int peer = 0; peer < size(); ++peer) BeginReceives(peer, nullptr);
}

}  // namespace tributary
