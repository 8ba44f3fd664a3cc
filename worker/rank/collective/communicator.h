// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace tributary {

// A transfer in flight. Destroying it gives the transfer up.
class PendingTransfer {
 public:
  virtual ~PendingTransfer() = default;
  // OK once the memory may be reused. Errors as in Communicator.
  virtual absl::Status Wait() = 0;
};

// The collectives of a group of ranks. Every rank must make the same calls in
// the same order with the same sizes. Arrays are float32 in the memory of the
// group's device. A call returns when its result is complete, or with
//   Unavailable       a rank is gone
//   DeadlineExceeded  a rank did not come within the timeout
//   Cancelled         Abort was called
// The message names the failed rank, even if another rank detected the failure.
// After an error only Abort and the destructor may be called. The network
// between ranks belongs to the job, so its bytes are trusted, unlike those that
// servers and coordinators accept. For one thread, except Abort and
// waiting_for.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* backend() const = 0;  // "in-process", "gloo", "nccl"

  // All ranks get the root's array.
  virtual absl::Status Broadcast(float* data, int64_t n, int root) = 0;

  // data[i] becomes the sum over r, in rank order, of weights[r] * data[i] of
  // rank r. weights: one per rank, equal on all ranks; empty: all 1. On the
  // host the order of additions is that of Ops::WeightedSum, so the result
  // equals a parameter server's, bit for bit. NCCL adds in an order of its own,
  // which is the same for all calls of one size.
  virtual absl::Status AllReduce(float* data, int64_t n,
                                 absl::Span<const float> weights) = 0;
  absl::Status AllReduce(float* data, int64_t n) {
    return AllReduce(data, n, {});
  }

  // Rank r gets elements [bounds[r], bounds[r + 1]) of the same sum, in place;
  // the rest of its array is undefined. bounds: size() + 1 offsets from 0.
  virtual absl::Status ReduceScatter(float* data,
                                     absl::Span<const int64_t> bounds,
                                     absl::Span<const float> weights) = 0;
  // Rank r contributes elements [bounds[r], bounds[r + 1]); all ranks get all.
  virtual absl::Status AllGather(float* data,
                                 absl::Span<const int64_t> bounds) = 0;

  // The receiver must name the sender and the same n. Sends to one rank arrive
  // in order.
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

  // Ends the current call and all later ones. May be called from any thread.
  virtual void Abort(const std::string& why) = 0;

  // The rank, as the job numbers it, that the current call waits for; -1: none.
  // May be called from any thread.
  virtual int waiting_for() const = 0;

  // The bytes that this rank has moved. Not while another call is in progress.
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t bytes_received() const = 0;
};

// Splits [0, n) into `parts` ranges whose lengths are multiples of 16 elements
// (a cache line) and as even as possible. Returns parts + 1 bounds.
std::vector<int64_t> EvenBounds(int64_t n, int parts);

}  // namespace tributary
