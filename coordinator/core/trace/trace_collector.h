// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/trace/clock_offset.h"
#include "common/trace/trace_event.h"
#include "coordinator/core/members/membership.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Events of one process, as one heartbeat brought them.
struct TraceBatch {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t index = 0;
  uint64_t incarnation = 0;
  std::string host;
  uint64_t clock = 0;  // as in v1::TraceReport; 0: unknown
  ClockOffset::Estimate offset;
  uint64_t first = 0;     // number of the first event that was sent
  uint64_t recorded = 0;  // events that the process has recorded so far
  uint64_t dropped = 0;   // events that it could not record
  std::vector<TraceEvent> events;
};

// Takes the events of traced steps from the members' reports, each event once.
// Reports come from the network: a report with an impossible number is left out
// as a whole, and no report fails the job. While too many events wait to be
// taken, further reports are left out, too. A plain object.
class TraceCollector {
 public:
  static constexpr size_t kMaxReported = 4096;    // events in a heartbeat
  static constexpr size_t kMaxWaiting = 262144;   // events
  static constexpr int32_t kMaxNumber = 1 << 20;  // of a block

  // `job` is resolved and outlives the collector.
  explicit TraceCollector(const v1::JobSpec& job,
                          size_t max_waiting = kMaxWaiting)
      : job_(job), max_waiting_(max_waiting) {}

  // Takes the trace of a heartbeat, or leaves it out for good. False: there is
  // no trace, the job traces nothing, or the sender does not hold its place.
  bool Take(const v1::HeartbeatRequest& request, const Membership& membership);

  // Takes the batches since the last call, in order.
  std::vector<TraceBatch> TakeBatches() {
    waiting_ = 0;
    return std::exchange(batches_, {});
  }

 private:
  struct Sender {
    uint64_t incarnation = 0;
    uint64_t next = 0;  // number of the next event
  };

  bool IsPossible(const v1::TraceEvent& event) const;
  bool IsPossible(const v1::TraceReport& report) const;

  const v1::JobSpec& job_;
  const size_t max_waiting_;
  std::vector<TraceBatch> batches_;
  size_t waiting_ = 0;  // in batches_; an empty batch counts as one
  std::map<std::pair<v1::Role, uint32_t>, Sender> senders_;  // by place
};

}  // namespace tributary
