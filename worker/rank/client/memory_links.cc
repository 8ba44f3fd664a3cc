// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/memory_links.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace tributary {

bool NeedsSharedMemory(const v1::Plan& plan, uint32_t rank,
                       uint64_t incarnation) {
  const bool knows = rank < static_cast<uint32_t>(plan.incarnations_size());
  const bool came_later =
      knows && incarnation > plan.incarnations(static_cast<int>(rank));
  return plan.epoch() <= 1 && !came_later;
}

MemoryLinks::MemoryLinks(Transport transport, bool needed,
                         std::shared_ptr<SharedArena> gradients, uint32_t rank,
                         std::string ticket, int num_shards)
    : transport_(transport),
      needed_(needed),
      gradients_(transport == Transport::kGrpc ? nullptr
                                               : std::move(gradients)),
      rank_(rank),
      ticket_(std::move(ticket)),
      servers_(num_shards) {}

absl::Status MemoryLinks::Connect(int shard, const std::string& server,
                                  const v1::ClockResponse& clock,
                                  const v1::BlockAddress& address) {
  if (!gradients_ || std::exchange(servers_[shard].asked, true)) {
    return absl::OkStatus();
  }
  auto link = MemoryLink::Connect(gradients_, clock, address, rank_, ticket_);
  if (link.ok()) {
    spdlog::info("server {}: payloads through shared memory", server);
    servers_[shard].link = *std::move(link);
    return absl::OkStatus();
  }
  const std::string why(link.status().message());
  if (transport_ == Transport::kSharedMemory && needed_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no shared memory with server ", server, ": ", why,
        "; with `transport: auto` payloads would be sent over gRPC"));
  }
  if (transport_ == Transport::kSharedMemory) {
    spdlog::warn(
        "server {}: payloads go over gRPC until the job is started again, "
        "although it asks for shared memory, because the server or this worker "
        "was replaced on another host ({})",
        server, why);
  } else {
    spdlog::info("server {}: payloads over gRPC ({})", server, why);
  }
  return absl::OkStatus();
}

absl::Status MemoryLinks::Close() {
  for (Server& server : servers_) server.link.reset();
  return gradients_ ? gradients_->Detach() : absl::OkStatus();
}

}  // namespace tributary
