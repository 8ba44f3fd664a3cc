// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/unique_fd.h"
#include "common/host/memory/shared_arena.h"
#include "common/plan/partition_plan.h"
#include "common/wire/payload.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {

// A worker's connection to the shared memory of a server on its machine
// (docs/messages.md, "Shared memory"). The server reads gradients where the
// worker keeps them, and the worker reads weights where the server keeps them.
class MemoryLink {
 public:
  // `gradients`: the memory that the server may read. `clock`: the server's
  // answer with its socket. Unavailable: the server shares no memory, is on
  // another machine, or does not answer in time.
  static absl::StatusOr<std::unique_ptr<MemoryLink>> Connect(
      std::shared_ptr<SharedArena> gradients, const v1::ClockResponse& clock,
      const v1::BlockAddress& address, uint32_t rank,
      const std::string& ticket = "");

  // Makes the request refer to the block's gradient. Returns false and leaves
  // the request unchanged when a part of the gradient is outside the shared
  // memory.
  bool Describe(const Block& block, absl::Span<const float* const> tensors,
                v1::PushPullRequest* request) const;
  // The connection's ID. A push that names it may be answered in shared memory.
  uint64_t connection() const { return connection_; }

  // Returns the weights of an answer. DataLoss: they are not within the
  // server's memory.
  absl::StatusOr<Payload> Weights(uint64_t offset, int64_t bytes) const;

 private:
  MemoryLink(std::shared_ptr<SharedArena> gradients, UniqueFd socket,
             uint64_t connection, std::shared_ptr<const MappedArena> weights);

  const std::shared_ptr<SharedArena> gradients_;
  const UniqueFd socket_;  // closing it makes the server drop the connection
  const uint64_t connection_;
  const std::shared_ptr<const MappedArena> weights_;
};

}  // namespace tributary
