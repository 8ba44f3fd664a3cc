// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/round_options.h"

#include <memory>
#include <string>
#include <vector>

#include "common/wire/calls/grpc_calls.h"

namespace tributary {

bool IsHeld(const ParameterClient::Options& options, const DeviceMesh& mesh,
            const Block& block) {
  return options.rank == ParameterClient::kObserver ||
         mesh.Holds(static_cast<int>(options.rank), block.holders);
}

namespace {

TransferRound::Driver DriverFor(const ParameterClient::Options& options,
                                const PartitionPlan& partition,
                                const DeviceMesh& mesh) {
  int64_t bytes = 0;
  for (int shard = 0; shard < partition.num_shards(); ++shard) {
    for (const Block& block : partition.blocks(shard)) {
      if (IsHeld(options, mesh, block)) bytes += block.bytes();
    }
  }
  return bytes < options.for_tests.thread_from_bytes
             ? TransferRound::Driver::kCaller
             : TransferRound::Driver::kOwnThread;
}

std::unique_ptr<CallQueue> CallsOf(const ParameterClient::Options& options) {
  if (options.for_tests.calls) return options.for_tests.calls(options.plan);
  return std::make_unique<GrpcCallQueue>(
      std::vector<std::string>(options.plan.servers().begin(),
                               options.plan.servers().end()),
      options.proof);
}

}  // namespace

TransferRound::Options RoundOf(const ParameterClient::Options& options,
                               const PartitionPlan& partition,
                               const DeviceMesh& mesh) {
  return {.calls = CallsOf(options),
          .driver = DriverFor(options, partition, mesh),
          .most_unanswered = options.plan.unanswered_blocks(),
          .salt = uint64_t{options.rank} << 32 ^ options.incarnation << 16,
          .delay_micros = options.for_tests.delay_micros,
          .on_waiting = options.on_waiting};
}

}  // namespace tributary
