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

// Whether a job that asks for shared memory fails without it. It does when it
// begins, so that a wrong setting is found at once. Later a server, or this
// rank's process, may have been replaced on another host, which must not end
// the job.
bool NeedsSharedMemory(const v1::Plan& plan, uint32_t rank,
                       uint64_t incarnation);

// A worker's links to the shared memory of its servers, at most one for each.
class MemoryLinks {
 public:
  // gradients: the memory that servers may read; null: there are no links.
  // ticket: of the rank. needed: of NeedsSharedMemory.
  MemoryLinks(Transport transport, bool needed,
              std::shared_ptr<SharedArena> gradients, uint32_t rank,
              std::string ticket, int num_shards);

  // Links to a server that was not asked before. OK without a link: payloads
  // are sent over gRPC. FailedPrecondition: the transport asks for a link that
  // is needed, and there is none.
  absl::Status Connect(int shard, const std::string& server,
                       const v1::ClockResponse& clock,
                       const v1::BlockAddress& address);

  // Null: none.
  const MemoryLink* of(int shard) const { return servers_[shard].link.get(); }

  // Ends all links. Servers then keep the gradients that they were given as
  // they are now, whatever is written later.
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
