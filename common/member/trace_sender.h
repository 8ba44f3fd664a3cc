// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "common/trace/clock_offset.h"
#include "common/trace/trace_recorder.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/job.pb.h"
#include "tributary/v1/trace.pb.h"

namespace tributary {

// The recorder of a member of this resolved job; null: the job traces no steps.
std::unique_ptr<TraceRecorder> MakeTraceRecorder(const v1::JobSpec& job);

// Sends a recorder's events to the coordinator, a bounded number with each
// heartbeat, and estimates the offset of the coordinator's clock from the same
// messages. For one thread; times are passed in.
class TraceSender {
 public:
  static constexpr size_t kMaxEvents = 4096;  // of a heartbeat
  // When this many events wait, they are sent before the next heartbeat is due.
  static constexpr size_t kUrgentEvents = 1024;

  // `recorder` must outlive the sender. clock_id: see MonotonicClockId.
  TraceSender(TraceRecorder* recorder, uint64_t clock_id)
      : recorder_(recorder), clock_id_(clock_id) {}

  // Adds events to the heartbeat that is sent next. While more are left and the
  // coordinator takes them, the heartbeat does not report that the member has
  // finished.
  void Fill(v1::HeartbeatRequest* request, int64_t now_micros);
  // sent_micros, now_micros: when the request was sent and its answer arrived.
  void OnAnswer(const v1::HeartbeatResponse& answer, int64_t sent_micros,
                int64_t now_micros);
  // True when a heartbeat should be sent without waiting for the interval.
  bool Urgent() const;

 private:
  // Takes events out of the recorder, unless some are waiting for an answer.
  void TakeEvents();

  TraceRecorder* const recorder_;
  const uint64_t clock_id_;
  ClockOffset offset_;
  v1::TraceReport unsent_;     // not taken by the coordinator yet
  uint64_t told_dropped_ = 0;  // of the last report that was taken
  bool reported_ = false;      // the last heartbeat carried a report
  bool stalled_ = false;       // the last report was not taken (yet)
};

}  // namespace tributary
