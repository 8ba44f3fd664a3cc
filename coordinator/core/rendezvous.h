#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Collects what the members of groups tell each other before they connect. A
// plain object: its owner locks.
class Rendezvous {
 public:
  static constexpr size_t kMaxPayloadBytes = 64 << 10;
  static constexpr size_t kMaxGroups = 4096;
  static constexpr size_t kMaxNameBytes = 64;

  // For groups of ranks below num_ranks.
  explicit Rendezvous(uint32_t num_ranks) : num_ranks_(num_ranks) {}

  // Groups of an earlier plan are over.
  void Begin(uint64_t plan_epoch);

  // InvalidArgument: out of bounds, too many groups, or another named other
  // ranks. A rank may say its payload again; a process in its place may say
  // another until the group is complete, after that FailedPrecondition.
  absl::Status Put(const v1::ExchangeRequest& request);

  // Everybody's payload, once all are there; null before.
  const v1::ExchangeResponse* Complete(const std::string& group) const;
  // "ranks 2, 3": those that have said nothing yet.
  std::string Missing(const std::string& group) const;

 private:
  struct Group {
    std::vector<uint32_t> ranks;
    std::vector<std::optional<std::string>> payloads;  // [ranks]
    size_t missing = 0;
    v1::ExchangeResponse complete;  // once nobody is missing
  };

  absl::Status CheckBounds(const v1::ExchangeRequest& request) const;

  const uint32_t num_ranks_;
  uint64_t plan_epoch_ = 0;
  std::map<std::string, Group> groups_;
};

}  // namespace tributary
