// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/push_pull/child.h"

namespace tributary::bench {

// The amount to move: each worker sends `bytes` and receives as many in each of
// `steps` rounds, after `warm_up` rounds that are not measured.
struct Work {
  int workers = 1;
  int servers = 1;
  size_t bytes = 64 << 20;  // a multiple of 64
  size_t chunk = 1 << 20;
  int steps = 20;
  int warm_up = 3;
  int network_threads = 0;  // of a worker; 0: the client's default
};

// A worker's or a server's side of one measurement, in a process of its own.
struct Measured {
  double processor_seconds = 0;      // of this process, in all measured rounds
  std::vector<double> step_seconds;  // of each round; empty for a server

  std::string Encode() const;
  static Measured Decode(const std::string& bytes);
};

// A way to move bytes. A server tells its address over the wire and learns
// those of all servers; "begin" and "end" bound what it measures. A worker
// learns the addresses, warms up, tells that it is ready, and measures after
// "begin".
class Channel {
 public:
  virtual ~Channel() = default;
  virtual std::string name() const = 0;
  virtual void Serve(const Work& work, int server, Wire& wire) const = 0;
  virtual void Drive(const Work& work, int worker, Wire& wire) const = 0;
};

// One TCP stream for each worker, to server `worker % servers`, without any
// framing: all bytes are pushed and then pulled, in reads and writes of a
// chunk.
const Channel& RawTcp();

// ParameterClient and ParameterServer with SGD: the weights have `bytes` bytes
// in blocks of a chunk, spread over the servers. They work as in training, but
// no model computes. The bytes travel over gRPC or through shared memory.
const Channel& OverGrpc();
const Channel& OverSharedMemory();

// For channels: a server's part while workers measure, and a worker's rounds.
void ServeMeasured(Wire& wire);
void DriveMeasured(const Work& work, Wire& wire,
                   const std::function<void()>& step);

// Runs a measurement in new processes. Returns the workers' results first.
std::vector<Measured> Measure(const Channel& channel, const Work& work);

}  // namespace tributary::bench
