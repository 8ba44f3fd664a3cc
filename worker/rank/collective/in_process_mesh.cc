// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/host/steady_waits.h"
#include "worker/rank/collective/mesh.h"

namespace tributary {
namespace {

struct Message {  // the key that both sides give
  int from, to;
  uint64_t tag;
  friend bool operator<(const Message& a, const Message& b) {
    return std::tie(a.from, a.to, a.tag) < std::tie(b.from, b.to, b.tag);
  }
};

class Hub;

// One side of a message. The hub's lock guards its fields.
struct Side {
  Message message;
  bool sends = false;
  const void* source = nullptr;
  void* target = nullptr;
  size_t bytes = 0;
  bool copying = false;
  bool done = false;
  absl::Status status;

  int other() const { return sends ? message.to : message.from; }
};

absl::Status Gone(int rank) {
  return absl::UnavailableError(absl::StrCat("rank ", rank, " is gone"));
}

// Matches the two sides of each message. The side that comes second copies.
class Hub {
 public:
  explicit Hub(int size) : gone_(size), why_(size) {}

  void Post(Side* side, int rank) {
    Side* other = nullptr;
    {
      absl::MutexLock lock(&mu_);
      if (!why_[rank].empty()) {
        return EndLocked(side, absl::CancelledError(why_[rank]));
      }
      if (gone_[side->other()]) return EndLocked(side, Gone(side->other()));
      auto [found, is_first] = posted_.try_emplace(side->message, side);
      if (is_first) return;
      other = found->second;
      posted_.erase(found);
      if (other->bytes != side->bytes) {
        const absl::Status status = absl::InternalError(absl::StrCat(
            "ranks ", side->message.from, " and ", side->message.to,
            " disagree: ", side->bytes, " bytes and ", other->bytes));
        EndLocked(side, status);
        return EndLocked(other, status);
      }
      side->copying = other->copying = true;
    }
    const Side& from = side->sends ? *side : *other;
    const Side& to = side->sends ? *other : *side;
    std::memcpy(to.target, from.source, from.bytes);
    absl::MutexLock lock(&mu_);
    EndLocked(side, absl::OkStatus());
    EndLocked(other, absl::OkStatus());
  }

  absl::Status Wait(Side* side, absl::Duration timeout) {
    absl::MutexLock lock(&mu_);
    if (!AwaitFor(&mu_, absl::Condition(&side->done), timeout)) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", side->other(), " did not come for ",
                       absl::FormatDuration(timeout)));
    }
    return side->status;
  }

  void GiveUp(Side* side) {
    absl::MutexLock lock(&mu_);
    if (side->done) return;
    if (side->copying) return mu_.Await(absl::Condition(&side->done));
    posted_.erase(side->message);
  }

  void Abort(int rank, const std::string& why) {
    absl::MutexLock lock(&mu_);
    why_[rank] = why.empty() ? "aborted" : why;
    EndWhereLocked(
        [&](const Side& side) {
          return (side.sends ? side.message.from : side.message.to) == rank;
        },
        absl::CancelledError(why_[rank]));
    LeaveLocked(rank);  // it takes no further part
  }

  void Leave(int rank) {
    absl::MutexLock lock(&mu_);
    LeaveLocked(rank);
  }

 private:
  void LeaveLocked(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    gone_[rank] = true;
    EndWhereLocked([&](const Side& side) { return side.other() == rank; },
                   Gone(rank));
  }
  // Gives each side its own copy of the status, so threads share nothing.
  void EndLocked(Side* side, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    side->status = absl::Status(status.code(), status.message());
    side->done = true;
  }
  template <typename Predicate>
  void EndWhereLocked(Predicate predicate, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (auto i = posted_.begin(); i != posted_.end();) {
      if (predicate(*i->second)) {
        EndLocked(i->second, status);
        i = posted_.erase(i);
      } else {
        ++i;
      }
    }
  }

  absl::Mutex mu_;
  std::map<Message, Side*> posted_ ABSL_GUARDED_BY(mu_);  // one side is posted
  std::vector<bool> gone_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> why_ ABSL_GUARDED_BY(mu_);  // why each rank aborted
};

class HubOperation final : public Mesh::Operation {
 public:
  HubOperation(std::shared_ptr<Hub> hub, Side side, int rank)
      : hub_(std::move(hub)), side_(std::move(side)) {
    hub_->Post(&side_, rank);
  }
  ~HubOperation() override { hub_->GiveUp(&side_); }
  absl::Status Wait(absl::Duration timeout) override {
    return hub_->Wait(&side_, timeout);
  }

 private:
  const std::shared_ptr<Hub> hub_;
  Side side_;
};

class InProcessMesh final : public Mesh {
 public:
  InProcessMesh(std::shared_ptr<Hub> hub, int rank, int size)
      : hub_(std::move(hub)), rank_(rank), size_(size) {}
  ~InProcessMesh() override { hub_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* backend() const override { return "in-process"; }
  std::unique_ptr<Operation> Send(int to, uint64_t tag, const void* data,
                                  size_t bytes) override {
    return std::make_unique<HubOperation>(hub_,
                                          Side{.message = {rank_, to, tag},
                                               .sends = true,
                                               .source = data,
                                               .bytes = bytes},
                                          rank_);
  }
  std::unique_ptr<Operation> Receive(int from, uint64_t tag, void* data,
                                     size_t bytes) override {
    return std::make_unique<HubOperation>(
        hub_,
        Side{.message = {from, rank_, tag}, .target = data, .bytes = bytes},
        rank_);
  }
  void Abort(const std::string& why) override { hub_->Abort(rank_, why); }

 private:
  const std::shared_ptr<Hub> hub_;
  const int rank_;
  const int size_;
};

}  // namespace

std::vector<std::unique_ptr<Mesh>> CreateInProcessMesh(int size) {
  const auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Mesh>> sides;
  for (int rank = 0; rank < size; ++rank) {
    sides.push_back(std::make_unique<InProcessMesh>(hub, rank, size));
  }
  return sides;
}

}  // namespace tributary
