// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/members/membership.h"

namespace tributary {

// Tells the process that started a member how to react to the member's loss.
enum class LossVerdict {
  kFatal,    // the job fails because of it, or is over
  kReplace,  // another process shall take its place
  kGoesOn,   // the remaining members continue without it
};

// The places that have lost their holders under a plan and wait for another
// process, and the living workers that take over lost ranks. A plain object:
// time is passed in.
class LostPlaces {
 public:
  // Records that the place lost its holder. `step`: of the holder's last
  // heartbeat.
  void Add(const Place& place, int64_t step, int64_t now_micros);
  // Records that the place has a holder again. False: it was not lost.
  bool Remove(const Place& place);
  bool Contains(v1::Role role, uint32_t index) const {
    return places_.count({role, index}) > 0;
  }

  // Describes the first place that has been empty for this long; empty if none.
  std::string EmptyFor(int64_t timeout_micros, int64_t now_micros) const;
  // Names the lost places that the job waits for; empty when there are none.
  std::string WaitsFor(int64_t now_micros) const;
  // When the first of these places was lost; nullopt if there are none.
  std::optional<int64_t> SinceMicros() const;

  // Assigns every lost rank to the living worker process with the fewest ranks,
  // the lowest rank first; assigns it again when that worker is lost, too.
  // Adds a message for each assignment to `notices`.
  void Adopt(const Membership& membership, std::vector<std::string>* notices);
  // The ranks that this worker shall take over now.
  std::vector<uint32_t> AdoptedBy(uint32_t worker) const;

 private:
  struct Loss {
    int64_t since_micros = 0;
    int64_t step = 0;  // when it was last heard
    std::string name;  // of the lost member
  };

  std::map<std::pair<v1::Role, uint32_t>, Loss> places_;
  std::map<uint32_t, uint32_t> adopters_;  // lost rank -> worker
};

}  // namespace tributary
