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

// Moves bytes between any two ranks of a group. A message goes when both sides
// are there for it: the sender names receiver and tag, the receiver sender and
// tag, both the same number of bytes, at least 1. Every pair of ranks uses a
// tag once. For any thread; an operation is for one.
class Mesh {
 public:
  // One side of a message. Destroying it gives the message up.
  class Operation {
   public:
    virtual ~Operation() = default;
    // OK: the memory may be used again. Unavailable: the other rank is gone.
    // DeadlineExceeded: it did not come in time. Cancelled: Abort. The text
    // names the rank.
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

  // Ends all waits, from any thread; what is begun later ends at once.
  virtual void Abort(const std::string& why) = 0;
};

// The ranks of one process, each a thread's: element r is rank r's side. A side
// that is destroyed, or aborted, is gone for the others.
std::vector<std::unique_ptr<Mesh>> CreateInProcessMesh(int size);

// Gives this rank's bytes to all ranks of the group and returns everybody's, in
// rank order.
using ExchangeBytes =
    std::function<absl::StatusOr<std::vector<std::string>>(std::string bytes)>;

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string host;  // this machine's name or address, as the others reach it
  absl::Duration connect_timeout = absl::Seconds(30);
  ExchangeBytes exchange;
};

// Gloo's TCP transport: two connections between every two ranks, one each way.
// Unavailable with Gloo's words when they cannot connect; errors of `exchange`
// pass through. The process ignores SIGPIPE from then on.
absl::StatusOr<std::unique_ptr<Mesh>> ConnectGlooMesh(
    const GlooOptions& options);

}  // namespace tributary
