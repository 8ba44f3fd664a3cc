// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/peer_memory.h"

#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tributary {

absl::StatusOr<Payload> PeerMemory::Gradient(
    const google::protobuf::RepeatedPtrField<v1::SharedRange>& ranges) const {
  std::vector<Payload::Piece> pieces;
  pieces.reserve(ranges.size());
  for (const v1::SharedRange& range : ranges) {
    const char* const bytes = theirs_->At(range.offset(), range.bytes());
    if (bytes == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("shared memory of ", theirs_->size(), " bytes has no ",
                       range.bytes(), " bytes at ", range.offset()));
    }
    pieces.emplace_back(bytes, range.bytes());
  }
  return Payload(std::move(pieces), theirs_);
}

void PeerMemory::Keep(uint32_t block, grpc::Slice weights) {
  absl::MutexLock lock(&mu_);
  // The old weights are freed with the argument, outside the lock.
  std::swap(kept_[block], weights);
}

void PeerMemory::Release(uint32_t block) { Keep(block, grpc::Slice()); }

uint64_t PeerMemories::Add(std::shared_ptr<PeerMemory> peer) {
  std::random_device chance;
  absl::MutexLock lock(&mu_);
  uint64_t connection = 0;
  while (connection == 0 || peers_.contains(connection)) {
    connection = uint64_t{chance()} << 32 | chance();
  }
  peers_.emplace(connection, std::move(peer));
  return connection;
}

void PeerMemories::Remove(uint64_t connection) {
  std::shared_ptr<PeerMemory> gone;  // freed outside the lock
  absl::MutexLock lock(&mu_);
  if (const auto found = peers_.find(connection); found != peers_.end()) {
    gone = std::move(found->second);
    peers_.erase(found);
  }
}

std::shared_ptr<PeerMemory> PeerMemories::Find(uint64_t connection) const {
  absl::MutexLock lock(&mu_);
  const auto found = peers_.find(connection);
  return found == peers_.end() ? nullptr : found->second;
}

size_t PeerMemories::size() const {
  absl::MutexLock lock(&mu_);
  return peers_.size();
}

}  // namespace tributary
