#pragma once

#include <cstdint>
#include <limits>

#include "common/layers/model_costs.h"
#include "common/plan/pipeline_schedule.h"

namespace tributary {

// How the data-parallel replicas of a model agree on a step.
enum class Exchange {
  kParameterServer,
  kAllReduce,
  kShardedAllReduce,  // ZeRO stage 1
  kThreads,           // one process with a replica a thread
};

// A mesh of workers: data x tensor x stages, and what the replicas of the data
// axis do. The worker of a replica holds 1 / tensor of the large layers of one
// stage.
struct StrategyShape {
  // Defaults of the job file.
  static constexpr uint64_t kAllReduceBucketBytes = 25 << 20;
  static constexpr uint64_t kFirstBucketBytes = 1 << 20;

  Exchange exchange = Exchange::kParameterServer;
  int tensor = 1;
  int stages = 1;
  int micro_batches = 1;  // of a pipeline
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int servers = 1;                  // of kParameterServer
  int exchange_every = 1;           // steps; the period of local_sgd
  uint64_t bucket_bytes = 4 << 20;  // PartitionPlan's default
  uint64_t first_bucket_bytes = kFirstBucketBytes;  // not of kParameterServer
};

// The links: every process is a host of its own with one link, full duplex,
// into a switch that never is the bottleneck.
struct ClusterShape {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // What sending and taking a message costs besides the wire's latency.
  static constexpr double kSoftwareLatency = 50e-6;

  double bandwidth = kInfinite;  // payload bytes a second, each way
  double latency = 0;            // seconds one way, with the software's part
  // Bytes that a link lets through at once when it has been idle (a token
  // bucket, as tc tbf): 0 for a wire.
  double burst_bytes = 0;
  // Cores and memory bus that all processes share because they run on one
  // machine; 0: every process has its own.
  double shared_cores = 0;
};

// How fast a worker computes, measured or given.
struct ComputeSpeed {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  // What is usual, where nothing is measured: each side of a byte and of a
  // message over TCP (docs/parallelism.md), and a process without data.
  static constexpr double kCpuSecondsPerByte = 9e-10;
  static constexpr double kCpuSecondsPerMessage = 9e-5;
  static constexpr double kProcessBytes = 40e6;

  double forward_flops = kInfinite;  // a second
  double backward_flops = kInfinite;
  // Seconds of a forward and backward pass that do not depend on the batch.
  double pass_seconds = 0;
  double memory_bandwidth = kInfinite;  // bytes a second, of one process
  double cpu_seconds_per_byte = 0;      // of sending a byte, and of receiving
  double cpu_seconds_per_message = 0;   // likewise
  // Memory of a process before its part of the model.
  double process_bytes = 0;
  double server_process_bytes = 0;
};

// What a link of this rate carries of payload: 1,448 of the 1,514 bytes of an
// Ethernet frame are TCP's with time stamps.
inline double PayloadRate(double link_bytes_per_second) {
  return link_bytes_per_second * 1448 / 1514;
}

struct CostInputs {
  const ModelCosts* model = nullptr;  // outlives the call
  StrategyShape strategy;
  int workers = 1;           // data x tensor x stages
  int64_t global_rows = 1;   // samples of a micro-batch, of all replicas
  int64_t accumulation = 1;  // micro-batches a step
  int optimizer_states = 0;  // tensors beside each weight: Adam 2
  bool cut_logits = false;   // tensor ranks' loss takes them (CutsLogits)
  ClusterShape cluster;
  ComputeSpeed compute;
};

}  // namespace tributary
