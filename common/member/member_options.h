// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/wire/caller_proof.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A Member calls these on its heartbeat thread.
struct MemberCallbacks {
  // Called once, when the job is over (OK: it is done)
  // or the coordinator is lost. The callback should cancel the process's calls.
  std::function<void(const absl::Status&)> on_end;
  // Called with each new plan's epoch, when the plan
  // that this process works on has ended. The callback should cancel the
  // process's calls.
  std::function<void(uint64_t epoch)> on_new_plan;
  // Called repeatedly, until this worker has taken
  // over these ranks.
  std::function<void(const std::vector<uint32_t>& ranks)> on_adopt;
};

// Options of a Member.
struct MemberOptions {
  std::string coordinator;  // host:port
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string address;          // of a server: host:port for the workers
  std::string metrics_address;  // host:port of its metrics; empty: none
  std::string instance;         // empty: made of host, pid and a random number
  std::optional<uint32_t> wanted_index;  // this place only; none: any
  const Clock* clock = &Clock::Real();
  static constexpr absl::Duration kJoinTimeout = absl::Seconds(60);
  static constexpr absl::Duration kLostTimeout = absl::Seconds(30);
  // How long to wait for a coordinator that is not up, or has no free place.
  absl::Duration join_timeout = kJoinTimeout;
  // The coordinator counts as lost when it has not answered for this long.
  absl::Duration lost_timeout = kLostTimeout;
  MemberCallbacks callbacks;
  // Called on the heartbeat thread before each heartbeat, to set counters that
  // change continuously.
  std::function<void(v1::HeartbeatRequest*)> bring_up_to_date;
  CallerProof proof;  // of this process
  // Folders below which plans may have checkpoints; empty: anywhere.
  std::vector<std::string> checkpoint_roots;
};

}  // namespace tributary
