// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/parameter_memory.h"
#include "common/host/memory/shared_arena.h"
#include "common/member/member.h"
#include "common/optimizer/parameter_group.h"
#include "kernels/ops.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/client/parameter_client.h"
#include "worker/rank/parallel/gradient_synchronizer.h"
#include "worker/rank/parallel/residual_checkpoints.h"

namespace tributary {

// The objects with which a rank synchronizes with servers. All must outlive the
// synchronizer.
struct ServerSynchronizerParts {
  Member* member = nullptr;
  ParameterMemory* model = nullptr;  // on the device of `ops`
  Ops* ops = nullptr;
  // The memory with gradients that servers on this machine may read: the
  // model's or, when the model is on a device, copies. Null: gradients are
  // sent.
  std::shared_ptr<SharedArena> gradient_memory;
  int64_t total_steps = 0;
  // Returns the samples of all ranks in a step, from 0; null: not known ahead.
  std::function<uint64_t(int64_t step)> all_samples;
  // For the steps that a rank takes by itself with local_sgd: the learning rate
  // of training.optimizer, and the job's parameter groups.
  std::function<double(int64_t step)> learning_rate;
  std::vector<ParameterGroup> groups;
  bool recomputes = false;  // Member::DeclareArithmetic
  // Called with the shard whose server does not answer now; -1: all answer.
  std::function<void(int shard)> on_silent_shard;
  struct ForTests {
    ParameterClient::ForTests client;
    // Sets where the residuals of checkpoints are; null: on the disk.
    std::function<void(const v1::Plan&, ResidualCheckpoints::Options*)> disk;
  } for_tests;
};

// Connects a rank to the servers of this plan, by the job's synchronization
// policy.
absl::StatusOr<std::unique_ptr<GradientSynchronizer>> MakeServerSynchronizer(
    const ServerSynchronizerParts& parts, const v1::Plan& plan);

}  // namespace tributary
