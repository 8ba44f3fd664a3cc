// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/strategy.h"
#include "common/host/memory/shared_arena.h"
#include "tributary/v1/parameter_service.pb.h"
#include "tributary/v1/plan.pb.h"
#include "worker/rank/client/memory_link.h"

namespace tributary {

// True when a job that asks for shared memory must fail without it: when the
// job begins, so that a wrong setting is found at once. Later the job must go
// on, because a server or this rank's process may have been replaced on another
// host.
bool NeedsSharedMemory(const v1::Plan& plan, uint32_t rank,
                       uint64_t incarnation);

// A worker's links to the shared memory of its servers, at most one for each.
class MemoryLinks {
 public:
  // gradients: the memory that servers may read; null: no links are made.
  // ticket: the rank's. needed: the result of NeedsSharedMemory.
  MemoryLinks(Transport transport, bool needed,
              std::shared_ptr<SharedArena> gradients, uint32_t rank,
              std::string ticket, int num_shards);

  // Asks a server for a link, at most once. Returns OK without a link when
  // payloads are to be sent over gRPC instead. FailedPrecondition: there is no
  // link, but the transport asks for one and it is needed.
  absl::Status Connect(int shard, const std::string& server,
                       const v1::ClockResponse& clock,
                       const v1::BlockAddress& address);

  // Returns null when there is no link to the shard's server.
  const MemoryLink* of(int shard) const { return servers_[shard].link.get(); }

  // Ends all links. Servers keep the present values of the gradients that were
  // pushed, even if this process overwrites the memory later.
  absl::Status Close();

 private:
  struct Server {
    bool asked = false;
    std::unique_ptr<MemoryLink> link;
  };

  const Transport transport_;
  const bool needed_;
  const std::shared_ptr<SharedArena> gradients_;
  const uint32_t rank_;
  const std::string ticket_;
  std::vector<Server> servers_;  // by shard
};

}  // namespace tributary
