#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Of a Member.
struct MemberOptions {
  std::string coordinator;  // host:port
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string address;          // a server's host:port as others reach it
  std::string metrics_address;  // host:port of its metrics; empty: none
  std::string instance;         // empty: made from host, pid and chance
  std::optional<uint32_t> wanted_index;  // this place or none; else any
  const Clock* clock = &Clock::Real();
  // How long to wait for a coordinator that is not up, or has no free place.
  absl::Duration join_timeout = absl::Seconds(60);
  // Without an answer for so long the coordinator counts as lost.
  absl::Duration lost_timeout = absl::Seconds(30);
  // Called once, on the heartbeat thread, when the job is over or the
  // coordinator is lost; OK: it is done. The place to cancel its calls.
  std::function<void(const absl::Status&)> on_end;
  // Called on the heartbeat thread with each new epoch, when the plan that
  // this process works on is over: the place to cancel its calls.
  std::function<void(uint64_t epoch)> on_new_plan;
  // Called there again and again until this worker has taken these ranks
  // over.
  std::function<void(const std::vector<uint32_t>& ranks)> on_adopt;
  // Called there before each heartbeat: sets figures that change all the
  // time.
  std::function<void(v1::HeartbeatRequest*)> bring_up_to_date;
};

}  // namespace tributary
