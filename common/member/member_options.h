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
#include "common/member/simulated_host.h"
#include "common/wire/identity/caller_proof.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A Member calls these on its heartbeat thread.
struct MemberCallbacks {
  // Once, when the job is over (OK: it is done) or the coordinator is lost.
  // This callback and the next should cancel the process's calls.
  std::function<void(const absl::Status&)> on_end;
  // With each new plan's epoch, when the plan that this process works on has
  // ended.
  std::function<void(uint64_t epoch)> on_new_plan;
  // Repeatedly, until this worker has taken over these ranks.
  std::function<void(const std::vector<uint32_t>& ranks)> on_adopt;
  // Before each heartbeat, to set counters that change continuously.
  std::function<void(v1::HeartbeatRequest*)> bring_up_to_date;
};

// How long a Member waits.
struct MemberTimeouts {
  static constexpr absl::Duration kJoin = absl::Seconds(60);
  static constexpr absl::Duration kLost = absl::Seconds(30);
  // How long to wait for a coordinator that is not up or has no free place.
  absl::Duration join = kJoin;
  // The coordinator counts as lost when it has not answered for this long.
  absl::Duration lost = kLost;
};

// Options of a Member.
struct MemberOptions {
  std::string coordinator;  // host:port
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string address;          // of a server: host:port for the workers
  std::string metrics_address;  // host:port of its metrics; empty: no metrics
  std::string instance;         // empty: made of host, pid and a random number
  std::optional<uint32_t> wanted_index;  // this place only; none: any
  const Clock* clock = &Clock::Real();
  MemberTimeouts timeouts;
  MemberCallbacks callbacks;
  CallerProof proof;  // of this process
  // Folders below which plans may have checkpoints; empty: anywhere.
  std::vector<std::string> checkpoint_roots;
  SimulatedHost* simulated = nullptr;  // null: outside the simulator
};

}  // namespace tributary
