// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tributary {

// Moves bytes between any two ranks of a group. A message moves once both sides
// have posted it: the sender names the receiver and a tag, the receiver names
// the sender and the same tag, and both pass the same number of bytes, at least
// 1. For each sender and receiver a tag may be used once. Thread-safe; an
// Operation is for one thread.
class Mesh {
 public:
  // One side of a message. Destroying it gives the message up.
  class Operation {
   public:
    virtual ~Operation() = default;
    // OK: the memory may be reused. Unavailable: the other rank is gone.
    // DeadlineExceeded: it did not come in time. Cancelled: Abort was called.
    // The message names the rank.
    virtual absl::Status Wait(absl::Duration timeout) = 0;
  };

  virtual ~Mesh() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;

  virtual std::unique_ptr<Operation> Send(int to, uint64_t tag,
                                          const void* data, size_t bytes) = 0;
  virtual std::unique_ptr<Operation> Receive(int from, uint64_t tag, void* data,
                                             size_t bytes) = 0;

  // Ends all waits with Cancelled; later operations end at once. May be called
  // from any thread.
  virtual void Abort(const std::string& why) = 0;
};

// Returns the job's number of a rank of a group. job_ranks: the job's numbers
// of all ranks of the group; empty: 0, 1, and so on.
inline int JobRank(const std::vector<int>& job_ranks, int rank) {
  return job_ranks.empty() ? rank : job_ranks[rank];
}

// Connects the ranks of one process, one thread each. Element r is rank r's
// side. A side that is destroyed or aborted is gone for the others.
std::vector<std::unique_ptr<Mesh>> CreateInProcessMesh(int size);

// Sends `bytes` to all ranks of the group and returns the bytes of all ranks,
// in rank order.
using ExchangeBytes =
    std::function<absl::StatusOr<std::vector<std::string>>(std::string bytes)>;

// The same, but rank r also receives parts[r], after the bytes for all.
using ExchangeParts = std::function<absl::StatusOr<std::vector<std::string>>(
    std::string bytes, std::vector<std::string> parts)>;

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string host;  // name or address under which others reach this host
  absl::Duration connect_timeout = absl::Seconds(30);
  ExchangeParts exchange;
};

// Connects over Gloo's TCP transport, with two connections between any two
// ranks, one per direction. Unavailable with Gloo's message when ranks cannot
// connect; errors of `exchange` are returned. The process ignores SIGPIPE
// afterwards.
absl::StatusOr<std::unique_ptr<Mesh>> ConnectGlooMesh(
    const GlooOptions& options);

}  // namespace tributary
