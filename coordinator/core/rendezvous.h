// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Collects the payloads that the members of a group exchange before they
// connect. A plain object: its owner locks.
class Rendezvous {
 public:
  static constexpr size_t kMaxPayloadBytes = 64 << 10;
  static constexpr size_t kMaxGroups = 4096;
  static constexpr size_t kMaxNameBytes = 64;

  // For groups of ranks below num_ranks.
  explicit Rendezvous(uint32_t num_ranks) : num_ranks_(num_ranks) {}

  // Starts a plan: the groups of an earlier plan are dropped.
  void Begin(uint64_t plan_epoch);

  // Stores a rank's payload. InvalidArgument: out of bounds, too many groups,
  // or another rank named other ranks for this group. A rank may repeat its
  // payload. Until the group is complete a replacement process may send another
  // payload; after that it gets FailedPrecondition.
  absl::Status Put(const v1::ExchangeRequest& request);

  // All payloads once the group is complete; null before.
  const v1::ExchangeResponse* Complete(const std::string& group) const;
  // "ranks 2, 3": the ranks whose payload is missing.
  std::string Missing(const std::string& group) const;

 private:
  struct Group {
    std::vector<uint32_t> ranks;
    std::vector<std::optional<std::string>> payloads;  // [ranks]
    size_t missing = 0;
    v1::ExchangeResponse complete;  // set once no payload is missing
  };

  absl::Status CheckBounds(const v1::ExchangeRequest& request) const;

  const uint32_t num_ranks_;
  uint64_t plan_epoch_ = 0;
  std::map<std::string, Group> groups_;
};

}  // namespace tributary
