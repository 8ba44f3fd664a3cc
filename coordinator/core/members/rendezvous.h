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

// Collects what the members of a group exchange before they connect: of each
// rank a payload for all ranks and, if it has any, a part for each of them. A
// plain object: its owner locks.
class Rendezvous {
 public:
  static constexpr size_t kMaxGroups = 4096;
  static constexpr size_t kMaxNameBytes = 64;

  // For groups of ranks below num_ranks.
  explicit Rendezvous(uint32_t num_ranks) : num_ranks_(num_ranks) {}

  // Starts a plan: the groups of an earlier plan are dropped.
  void Begin(uint64_t plan_epoch);

  // Stores a rank's payload and parts. InvalidArgument: out of bounds, too many
  // groups, or another rank named other ranks for this group. A rank may repeat
  // them. Until the group is complete a replacement process may send others;
  // after that it gets FailedPrecondition.
  absl::Status Put(const v1::ExchangeRequest& request);

  bool IsComplete(const std::string& group) const;
  // The payloads of all ranks for this one; nullopt: the group is not complete,
  // or the rank is not in it.
  std::optional<v1::ExchangeResponse> AnswerTo(uint32_t rank,
                                               const std::string& group) const;
  // "ranks 2, 3": the ranks whose payload is missing.
  std::vector<uint32_t> Missing(const std::string& group) const;

 private:
  struct Sent {
    std::string payload;
    std::vector<std::string> parts;  // [ranks], or none
    friend bool operator==(const Sent&, const Sent&) = default;
  };
  struct Group {
    std::vector<uint32_t> ranks;
    std::vector<std::optional<Sent>> sent;  // [ranks]
    size_t missing = 0;

    size_t PlaceOf(uint32_t rank) const;  // ranks.size(): not in the group
  };

  absl::Status CheckBounds(const v1::ExchangeRequest& request) const;

  const uint32_t num_ranks_;
  uint64_t plan_epoch_ = 0;
  std::map<std::string, Group> groups_;
};

}  // namespace tributary
