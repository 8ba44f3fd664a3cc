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

// Collects what the members of a group exchange before they connect: each rank
// sends a payload for all ranks and may send a part for each of them. A plain
// object: its owner locks.
class Rendezvous {
 public:
  static constexpr size_t kMaxGroups = 4096;
  static constexpr size_t kMaxNameBytes = 64;

  // For groups of ranks below num_ranks.
  explicit Rendezvous(uint32_t num_ranks) : num_ranks_(num_ranks) {}

  // Starts a plan: the groups of an earlier plan are dropped.
  void Begin(uint64_t plan_epoch);

  // Stores a rank's payload and parts. A rank may repeat them. Until the group
  // is complete, a replacement process may send different ones; after that it
  // gets FailedPrecondition. InvalidArgument: out of bounds, too many groups,
  // or another rank named different ranks for this group.
  absl::Status Put(const v1::ExchangeRequest& request);

  bool IsComplete(const std::string& group) const;
  // Returns the payloads of all ranks for this one; nullopt if the group is not
  // complete or does not contain the rank.
  std::optional<v1::ExchangeResponse> AnswerTo(uint32_t rank,
                                               const std::string& group) const;
  // "ranks 2, 3": the ranks whose payload is missing.
  std::vector<uint32_t> Missing(const std::string& group) const;

 private:
  struct Sent {
    std::string payload;
    std::vector<std::string> parts;  // [ranks], or empty
    friend bool operator==(const Sent&, const Sent&) = default;
  };
  struct Group {
    std::vector<uint32_t> ranks;
    std::vector<std::optional<Sent>> sent;  // [ranks]
    size_t missing = 0;

    size_t PlaceOf(uint32_t rank) const;  // ranks.size() if not in the group
  };

  absl::Status CheckBounds(const v1::ExchangeRequest& request) const;

  const uint32_t num_ranks_;
  uint64_t plan_epoch_ = 0;
  std::map<std::string, Group> groups_;
};

}  // namespace tributary
