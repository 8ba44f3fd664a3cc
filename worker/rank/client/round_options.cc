// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/round_options.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "common/host/address.h"
#include "common/host/machine.h"
#include "common/wire/calls/grpc_calls.h"

namespace tributary {

bool IsHeld(const ParameterClient::Options& options, const DeviceMesh& mesh,
            const Block& block) {
  return options.rank == ParameterClient::kObserver ||
         mesh.Holds(static_cast<int>(options.rank), block.holders);
}

namespace {

// Each of several network threads copies at least this much in a step.
constexpr int64_t kBytesAThread = 16 << 20;

// This rank's part of the model, and the servers that have some of it.
struct Held {
  int64_t bytes = 0;
  int servers = 0;
};

Held HeldOf(const ParameterClient::Options& options,
            const PartitionPlan& partition, const DeviceMesh& mesh) {
  Held held;
  for (int shard = 0; shard < partition.num_shards(); ++shard) {
    const int64_t before = held.bytes;
    for (const Block& block : partition.blocks(shard)) {
      if (IsHeld(options, mesh, block)) held.bytes += block.bytes();
    }
    if (held.bytes > before) ++held.servers;
  }
  return held;
}

// Servers at loopback addresses share this machine with all workers of the job.
// Otherwise the workers' machines are unknown, so this worker counts as alone.
int ProcessorsAWorker(const v1::Plan& plan) {
  const bool here = absl::c_all_of(plan.servers(), IsLoopback);
  const int workers =
      here ? std::max(1, static_cast<int>(plan.num_workers())) : 1;
  return ThisMachine().processors / workers;
}

std::vector<std::unique_ptr<CallQueue>> CallsOf(
    const ParameterClient::Options& options, int queues) {
  std::vector<std::unique_ptr<CallQueue>> calls;
  if (options.for_tests.calls) {
    calls.push_back(options.for_tests.calls(options.plan));
    return calls;
  }
  for (int i = 0; i < queues; ++i) {
    calls.push_back(std::make_unique<GrpcCallQueue>(
        std::vector<std::string>(options.plan.servers().begin(),
                                 options.plan.servers().end()),
        options.proof));
  }
  return calls;
}

}  // namespace

int NetworkThreads(int64_t bytes, int servers, int processors_a_worker) {
  const int64_t most = std::min<int64_t>(servers, processors_a_worker / 4);
  return static_cast<int>(
      std::max<int64_t>(1, std::min(most, bytes / kBytesAThread)));
}

TransferRound::Options RoundOf(const ParameterClient::Options& options,
                               const PartitionPlan& partition,
                               const DeviceMesh& mesh) {
  const Held held = HeldOf(options, partition, mesh);
  const bool has_threads = held.bytes >= options.for_tests.thread_from_bytes;
  const int threads = !has_threads ? 1
                      : options.for_tests.network_threads
                          ? *options.for_tests.network_threads
                          : NetworkThreads(held.bytes, held.servers,
                                           ProcessorsAWorker(options.plan));
  return {.calls = CallsOf(options, threads),
          .driver = has_threads ? TransferRound::Driver::kOwnThread
                                : TransferRound::Driver::kCaller,
          .most_unanswered = options.plan.unanswered_blocks(),
          .salt = uint64_t{options.rank} << 32 ^ options.incarnation << 16,
          .delay_micros = options.for_tests.delay_micros,
          .on_waiting = options.on_waiting};
}

}  // namespace tributary
