// SPDX-License-Identifier: Apache-2.0
#include "server/service/calls/unread_answers.h"

#include <utility>

namespace tributary {

struct UnreadAnswers::Sent {
  std::shared_ptr<UnreadAnswers> owner;
  std::string peer;
  SharedBuffer buffer;
  uint64_t bytes;
};

void UnreadAnswers::SetLimits(const Limits& limits) {
  absl::MutexLock lock(&mu_);
  limits_ = limits;
}

uint64_t UnreadAnswers::bytes() const {
  absl::MutexLock lock(&mu_);
  return bytes_;
}

bool UnreadAnswers::Admits(const std::string& peer) const {
  absl::MutexLock lock(&mu_);
  const auto unread = peers_.find(peer);
  return unread == peers_.end() ||
         (unread->second < limits_.peer_bytes && bytes_ < limits_.bytes);
}

grpc::Slice UnreadAnswers::Send(std::string peer, SharedBuffer buffer,
                                size_t n) {
  const void* const data = buffer.data();
  {
    absl::MutexLock lock(&mu_);
    peers_[peer] += n;
    Shared& shared = memory_[data];
    if (shared.answers++ == 0) {
      shared.bytes = n;
      bytes_ += n;
    }
  }
  auto* sent =
      new Sent{shared_from_this(), std::move(peer), std::move(buffer), n};
  return grpc::Slice(
      const_cast<void*>(data), n,
      [](void* user) {
        const std::unique_ptr<Sent> gone(static_cast<Sent*>(user));
        gone->owner->Release(*gone);
      },
      sent);
}

void UnreadAnswers::Release(const Sent& sent) {
  absl::MutexLock lock(&mu_);
  const auto peer = peers_.find(sent.peer);
  peer->second -= sent.bytes;
  if (peer->second == 0) peers_.erase(peer);
  const auto shared = memory_.find(sent.buffer.data());
  if (--shared->second.answers > 0) return;
  bytes_ -= shared->second.bytes;
  memory_.erase(shared);
}

}  // namespace tributary
