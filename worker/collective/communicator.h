#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace tributary {

// A transfer under way. Destroying it gives the transfer up.
class PendingTransfer {
 public:
  virtual ~PendingTransfer() = default;
  // OK once the memory may be used again. Errors as Communicator's.
  virtual absl::Status Wait() = 0;
};

// What the ranks of one group do together. Every rank makes the same calls in
// the same order with the same sizes; arrays are float32 in the memory of the
// group's device. A call returns when the result is there, or with
//   Unavailable       a rank is gone
//   DeadlineExceeded  a rank did not come within the timeout
//   Cancelled         Abort was called
// and names the rank, be it one that a third rank has ended for; after an error
// only Abort and the destructor may follow.
// The network between ranks is the job's own: its bytes are trusted, unlike
// those that servers and coordinators take. For one thread, but for Abort.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;  // "in-process", "gloo", "nccl"

  // All ranks get root's array.
  virtual absl::Status Broadcast(float* data, int64_t n, int root) = 0;

  // data[i] becomes the sum over r, in rank order, of weights[r] * data[i] of
  // rank r. weights: one a rank, the same on all; empty: all 1. On the host the
  // order of additions is that of Ops::WeightedSum, so the bits are a parameter
  // server's; NCCL adds in an order of its own, the same for every call of one
  // size.
  virtual absl::Status AllReduce(float* data, int64_t n,
                                 absl::Span<const float> weights) = 0;
  absl::Status AllReduce(float* data, int64_t n) {
    return AllReduce(data, n, {});
  }

  // Of the same sum, rank r gets elements [bounds[r], bounds[r + 1]) in place;
  // the rest of its array is undefined. bounds: size() + 1 of them, from 0.
  virtual absl::Status ReduceScatter(float* data,
                                     absl::Span<const int64_t> bounds,
                                     absl::Span<const float> weights) = 0;
  // Rank r gives elements [bounds[r], bounds[r + 1]); all get all.
  virtual absl::Status AllGather(float* data,
                                 absl::Span<const int64_t> bounds) = 0;

  // Block r of `in` goes to rank r, whose block of this rank's number it
  // becomes. in, out: size() blocks of n elements each, not overlapping.
  virtual absl::Status AllToAll(const float* in, float* out, int64_t n) = 0;

  // The receiver names the sender and the same n. Sends to one rank arrive in
  // order.
  virtual std::unique_ptr<PendingTransfer> StartSend(const float* data,
                                                     int64_t n, int to) = 0;
  virtual std::unique_ptr<PendingTransfer> StartReceive(float* data, int64_t n,
                                                        int from) = 0;
  absl::Status Send(const float* data, int64_t n, int to) {
    return StartSend(data, n, to)->Wait();
  }
  absl::Status Receive(float* data, int64_t n, int from) {
    return StartReceive(data, n, from)->Wait();
  }

  // Returns when every rank has called it.
  virtual absl::Status Barrier() = 0;

  // Ends the call under way and every later one, from any thread.
  virtual void Abort(const std::string& why) = 0;

  // The rank that a call under way waits for, as the job calls it, from any
  // thread; -1: for none.
  virtual int waiting_for() const = 0;

  // By this rank; asked while no call is under way.
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t bytes_received() const = 0;
};

// [0, n) cut into `parts` ranges of as even a length as multiples of 16
// elements allow (a cache line): parts + 1 bounds.
std::vector<int64_t> EvenBounds(int64_t n, int parts);

}  // namespace tributary
