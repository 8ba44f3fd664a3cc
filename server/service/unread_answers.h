#pragma once

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// Weights on their way: gRPC has them and the other end has not taken them yet.
// Each keeps its version of a block in memory until gRPC lets go of it, which
// in version 1.51 is when it is written or the connection ends, though the call
// be cancelled. So a connection that reads nothing is given nothing beyond a
// limit: it would keep every version.
class UnreadAnswers : public std::enable_shared_from_this<UnreadAnswers> {
 public:
  struct Limits {
    uint64_t peer_bytes = UINT64_MAX;  // of one connection
    uint64_t bytes = UINT64_MAX;  // of all; what several are sent counts once
  };

  void SetLimits(const Limits& limits) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether this connection is given weights. While all of them together are
  // over the limit only one that has taken everything so far is.
  bool Admits(const std::string& peer) const ABSL_LOCKS_EXCLUDED(mu_);
  // The first n bytes of the buffer, which count until the slice is gone.
  grpc::Slice Send(std::string peer, SharedBuffer buffer, size_t n)
      ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Sent;  // what a slice holds
  struct Shared {
    size_t answers = 0;
    uint64_t bytes = 0;
  };

  void Release(const Sent& sent) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  Limits limits_ ABSL_GUARDED_BY(mu_);
  // Bytes of each connection's, and memory of all.
  std::unordered_map<std::string, uint64_t> peers_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<const void*, Shared> memory_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tributary
