// SPDX-License-Identifier: Apache-2.0
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

// Accounts for weights that were given to gRPC and that the client has not read
// yet. Each answer keeps its version of a block in memory until gRPC releases
// it. gRPC 1.51 releases it when the answer is written or the connection ends,
// even if the call is cancelled. A client that reads nothing would keep every
// version in memory, so a connection over its limit gets no further weights.
class UnreadAnswers : public std::enable_shared_from_this<UnreadAnswers> {
 public:
  struct Limits {
    uint64_t peer_bytes = UINT64_MAX;  // per connection
    uint64_t bytes = UINT64_MAX;       // in total; each buffer counts once
  };

  void SetLimits(const Limits& limits) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether this connection may get weights. While the total is over its limit,
  // only connections that have read everything so far may.
  bool Admits(const std::string& peer) const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a slice of the first n bytes of the buffer. The bytes count as
  // unread until the slice is released.
  grpc::Slice Send(std::string peer, SharedBuffer buffer, size_t n)
      ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Sent;  // what a slice owns
  struct Shared {
    size_t answers = 0;
    uint64_t bytes = 0;
  };

  void Release(const Sent& sent) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  Limits limits_ ABSL_GUARDED_BY(mu_);
  // Unread bytes by connection, and unread answers by buffer.
  std::unordered_map<std::string, uint64_t> peers_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<const void*, Shared> memory_ ABSL_GUARDED_BY(mu_);
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tributary
