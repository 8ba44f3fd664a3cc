// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "common/base/strategy.h"
#include "common/layers/model_costs.h"

namespace tributary {

// The links between processes. Every process counts as a host with one
// full-duplex link to a switch that is never the bottleneck.
struct ClusterShape {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // The cost of sending and receiving a message, in addition to the wire's
  // latency.
  static constexpr double kSoftwareLatency = 50e-6;

  double bandwidth = kInfinite;  // payload bytes per second, in each direction
  double latency = 0;            // seconds one way, with kSoftwareLatency
  // Bytes that an idle link passes at once (a token bucket, as tc tbf); 0 for a
  // wire.
  double burst_bytes = 0;
  // Cores and memory bus that all processes share because they run on one
  // machine; 0: every process has its own.
  double shared_cores = 0;

  // True if the processes share a machine and its loopback, which is faster
  // than the links of simulated hosts.
  bool on_loopback() const { return shared_cores > 0 && bandwidth > 1e9; }
};

// How fast a worker computes, measured or given.
struct ComputeSpeed {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // Typical values where nothing is measured: CPU time per byte and per message
  // over TCP, at each end (docs/parallelism.md), and the memory of a process
  // without data.
  static constexpr double kCpuSecondsPerByte = 9e-10;
  static constexpr double kCpuSecondsPerMessage = 9e-5;
  static constexpr double kProcessBytes = 40e6;

  double forward_flops = kInfinite;  // per second
  double backward_flops = kInfinite;
  // Time of a forward and backward pass that does not depend on the batch, in
  // seconds.
  double pass_seconds = 0;
  double memory_bandwidth = kInfinite;  // bytes per second, of one process
  double cpu_seconds_per_byte = 0;      // to send a byte; again to receive it
  double cpu_seconds_per_message = 0;   // to send one; again to receive it
  // Memory of a process without its part of the model.
  double process_bytes = 0;
  double server_process_bytes = 0;
};

// The payload rate of a link: of the 1,514 bytes of an Ethernet frame 1,448 are
// TCP payload (with time stamps).
inline double PayloadRate(double link_bytes_per_second) {
  return link_bytes_per_second * 1448 / 1514;
}

struct CostInputs {
  const ModelCosts* model = nullptr;  // must outlive the call
  Strategy strategy;
  int64_t global_rows = 1;   // samples per micro-batch, of all replicas
  int64_t accumulation = 1;  // micro-batches per step
  int optimizer_states = 0;  // tensors per weight; 2 for Adam
  bool cut_logits = false;   // loss on partitioned logits (CutsLogits)
  ClusterShape cluster;
  ComputeSpeed compute;
};

}  // namespace tributary
