// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/group_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"

namespace tributary {
namespace {

enum Tag : uint64_t { kWord = 1, kInVain = 2, kEnd = 3 };

// No limit: the destructor aborts the wait.
constexpr absl::Duration kAsLongAsItTakes = absl::Hours(24 * 365);
// Timeout of a message to another rank, which listens from the start.
constexpr absl::Duration kToTell = absl::Seconds(1);

}  // namespace

GroupWatch::GroupWatch(std::unique_ptr<Mesh> mesh, std::vector<int> ranks)
    : mesh_(std::move(mesh)), ranks_(std::move(ranks)) {
  if (size() == 1) return;
  listening_ =
      mesh_->Receive((rank() + 1) % size(), kWord, &word_, sizeof(word_));
  thread_ = std::thread([this] { Listen(); });
}

GroupWatch::~GroupWatch() {
  if (!thread_.joinable()) return;
  {
    // Lets Lose pass on the loss first. Otherwise the previous rank would see
    // this rank's connection break and think that this rank is lost.
    const auto told = [this]()
                          ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !telling_; };
    absl::MutexLock lock(&mu_);
    AwaitFor(&mu_, absl::Condition(&told), kToTell);
  }
  mesh_->Abort("the group ends");
  thread_.join();
}

void GroupWatch::Listen() {
  const int next = (rank() + 1) % size();
  const absl::Status heard = listening_->Wait(kAsLongAsItTakes);
  if (heard.ok() && word_ >= 0 && word_ < size()) {
    Lose(word_, absl::StrCat(" is lost, says rank ", JobRank(ranks_, next)));
  } else if (absl::IsUnavailable(heard)) {
    Lose(next, " is gone");
  }
}

void GroupWatch::Lose(int rank, const std::string& how) {
  const int before = (this->rank() + size() - 1) % size();
  {
    absl::MutexLock lock(&mu_);
    if (leaving_ || !lost_.ok()) return;
    lost_ = absl::UnavailableError(
        absl::StrCat("rank ", JobRank(ranks_, rank), how));
    telling_ = before != rank;
    if (!telling_) return;
  }
  const int32_t word = rank;
  mesh_->Send(before, kWord, &word, sizeof(word))->Wait(kToTell).IgnoreError();
  absl::MutexLock lock(&mu_);
  telling_ = false;
}

absl::Status GroupWatch::lost() const {
  absl::MutexLock lock(&mu_);
  return lost_;
}

absl::Status GroupWatch::AwaitLost(absl::Duration timeout) const {
  const auto known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !lost_.ok();
  };
  absl::MutexLock lock(&mu_);
  AwaitFor(&mu_, absl::Condition(&known), timeout);
  return lost_;
}

std::vector<int> GroupWatch::Absent(uint64_t tag, absl::Duration timeout) {
  const int n = size();
  std::vector<char> there(n);
  const char here = 1;
  std::vector<std::unique_ptr<Mesh::Operation>> arriving(n), leaving(n);
  for (int i = 1; i < n; ++i) {
    const int peer = (rank() + i) % n;
    arriving[peer] = mesh_->Receive(peer, tag, &there[peer], 1);
    leaving[peer] = mesh_->Send(peer, tag, &here, 1);
  }
  std::vector<int> absent;
  const absl::Duration end = SteadyNow() + timeout;
  for (int peer = 0; peer < n; ++peer) {
    if (peer == rank()) continue;
    const absl::Duration left =
        std::max(end - SteadyNow(), absl::Milliseconds(1));
    if (!arriving[peer]->Wait(left).ok() || !leaving[peer]->Wait(left).ok()) {
      absent.push_back(peer);
    }
  }
  return absent;
}

std::vector<int> GroupWatch::FindSilent(absl::Duration timeout) {
  std::vector<int> silent;
  for (int rank : Absent(kInVain, timeout)) {
    if (silent.empty()) Lose(rank, " did not come");
    silent.push_back(JobRank(ranks_, rank));
  }
  return silent;
}

bool GroupWatch::Leave(absl::Duration timeout) {
  {
    // From now on a broken connection means that the next rank has left, not
    // that it is lost.
    absl::MutexLock lock(&mu_);
    if (!lost_.ok()) return false;
    leaving_ = true;
  }
  return Absent(kEnd, timeout).empty();
}

}  // namespace tributary
