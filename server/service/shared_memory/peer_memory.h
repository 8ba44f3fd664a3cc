// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/host/memory/shared_arena.h"
#include "common/wire/payload.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// The memory that a server shares with one worker on its machine: the worker's
// gradients, mapped for reading, and the server's weights that the worker may
// still read. Thread-safe.
class PeerMemory {
 public:
  // theirs: the worker's memory. ours: that of the served plan.
  PeerMemory(std::shared_ptr<const MappedArena> theirs,
             std::shared_ptr<SharedArena> ours)
      : theirs_(std::move(theirs)), ours_(std::move(ours)) {}

  // The bytes that the ranges name, which stay where they are. InvalidArgument:
  // a range is not within the worker's memory.
  absl::StatusOr<Payload> Gradient(
      const google::protobuf::RepeatedPtrField<v1::SharedRange>& ranges) const;

  // Where these weights are in the memory that the worker can read; nullopt:
  // they are not in it.
  std::optional<uint64_t> OffsetOf(const float* weights, size_t bytes) const {
    return ours_->OffsetOf(weights, bytes);
  }
  // Keeps weights of a block unchanged while the worker reads them, instead of
  // those that were kept for this block before.
  void Keep(uint32_t block, grpc::Slice weights) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops keeping weights of this block: the worker has read them.
  void Release(uint32_t block) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::shared_ptr<const MappedArena> theirs_;
  const std::shared_ptr<SharedArena> ours_;
  absl::Mutex mu_;
  std::unordered_map<uint32_t, grpc::Slice> kept_ ABSL_GUARDED_BY(mu_);
};

// A worker that reads a block's weights in the server's memory.
struct MemoryReader {
  std::shared_ptr<PeerMemory> memory;  // null: the answer has the weights
  uint64_t connection = 0;
  uint32_t block = 0;
};

// The connected workers by the number of their connection. Thread-safe.
class PeerMemories {
 public:
  // Returns the connection's number: random, so that a call cannot use the
  // memory of another worker by mistake.
  uint64_t Add(std::shared_ptr<PeerMemory> peer) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(uint64_t connection) ABSL_LOCKS_EXCLUDED(mu_);
  // Null: there is no such connection.
  std::shared_ptr<PeerMemory> Find(uint64_t connection) const
      ABSL_LOCKS_EXCLUDED(mu_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::unordered_map<uint64_t, std::shared_ptr<PeerMemory>> peers_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
