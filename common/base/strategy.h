// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/device_mesh.h"

namespace tributary {

// How a model's data-parallel replicas exchange gradients in a step.
enum class Exchange {
  kParameterServer,
  kAllReduce,
  kShardedAllReduce,  // ZeRO stage 1
  kThreads,           // one process with a thread per replica
};

// The order in which a stage of a pipeline computes on the micro-batches of a
// step. With p stages and m micro-batches both orders leave a stage idle for
// (p - 1) / (m + p - 1) of the time, but hold different numbers of activations.
enum class PipelineSchedule {
  // All forward passes, then all backward passes (Huang et al., NeurIPS 2019):
  // m activations at a time. Backward passes go in the order of the forward
  // passes, so that gradients sum to the same bits as with 1F1B.
  kGpipe,
  // As few forward passes as keep the later stages busy, then one backward for
  // each forward (PipeDream-flush: Narayanan et al., SC 2021): at most p - s
  // activations at a time on stage s, counted from 0.
  kOneForwardOneBackward,
};

// How payloads travel between a worker and a server.
enum class Transport {
  kAuto,  // shared memory where both are on one machine, else gRPC
  kGrpc,
  kSharedMemory,  // an error where it is not possible
};

// The strategy of a job (StrategyOf): a mesh of workers, data x stages x
// tensor, and the exchange along its data axis. A worker holds 1 / tensor of
// the large layers of one stage.
struct Strategy {
  // Defaults of the job file without servers.
  static constexpr uint64_t kAllReduceBucketBytes = 25 << 20;
  static constexpr uint64_t kFirstBucketBytes = 1 << 20;

  Exchange exchange = Exchange::kParameterServer;
  int workers = 1;  // data x stages x tensor
  int stages = 1;
  int tensor = 1;
  int micro_batches = 1;  // of a pipeline
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int servers = 1;                         // of kParameterServer
  Transport transport = Transport::kAuto;  // of kParameterServer
  int exchange_every = 1;                  // steps; the period of local_sgd
  // Each step adds the gradients of all ranks, so the weights after it do not
  // depend on timing. False for some policies of kParameterServer.
  bool bulk_synchronous = true;
  int delay = 0;              // SyncTraits::delay
  uint64_t bucket_bytes = 0;  // 0: PartitionPlan::DefaultBucketBytes
  uint64_t first_bucket_bytes = kFirstBucketBytes;  // not of kParameterServer
  // Bytes of one gradient element in a message to a server.
  double gradient_bytes = sizeof(float);
  double weight_bytes = sizeof(float);  // of one weight in an answer
  // Every worker keeps what the encodings of its gradients have left out.
  bool error_feedback = false;
  double timeout_seconds = 120;  // how long a step may wait for a member

  // The strategy's key in the job file.
  const char* name() const {
    return uses_servers()  ? "parameter_server"
           : one_process() ? "data_parallel"
                           : "all_reduce";
  }
  // True if servers hold the weights; otherwise the workers hold them.
  bool uses_servers() const { return exchange == Exchange::kParameterServer; }
  // Bytes per element of the encoded copy that a process keeps of its messages;
  // 0 if messages are not encoded.
  double encoded_gradient_bytes() const { return Encoded(gradient_bytes); }
  double encoded_weight_bytes() const { return Encoded(weight_bytes); }
  // True if the workers are threads of one process, which are lost together.
  bool one_process() const { return exchange == Exchange::kThreads; }
  int worker_processes() const { return one_process() ? 1 : workers; }
  DeviceMesh mesh() const {
    return {workers / (stages * tensor), stages, tensor};
  }
  // True if workers are connected with each other in groups. A lost member
  // breaks its group.
  bool has_groups() const { return !uses_servers() || stages * tensor > 1; }
  // True if checkpoints hold the residual of every rank; a plan that starts
  // from a checkpoint restores them. Otherwise a process begins with a residual
  // of zero, which is fine where the weights depend on timing anyway.
  bool checkpoints_residuals() const {
    return uses_servers() && error_feedback && bulk_synchronous;
  }
  // True if ranks write files of checkpoints: whole checkpoints if there are no
  // servers, otherwise their residuals.
  bool ranks_write_checkpoints() const {
    return !uses_servers() || checkpoints_residuals();
  }
  // True if a lost worker cannot be replaced alone, because it breaks its group
  // or its residual is lost: all members then go back to a checkpoint.
  bool worker_loss_rolls_back() const {
    return has_groups() || checkpoints_residuals();
  }

 private:
  double Encoded(double bytes) const {
    return uses_servers() && bytes != sizeof(float) ? bytes : 0;
  }
};

}  // namespace tributary
