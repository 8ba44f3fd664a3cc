// SPDX-License-Identifier: Apache-2.0
#include "common/member/trace_sender.h"

#include <algorithm>
#include <optional>

#include "common/job/job_options.h"

namespace tributary {
namespace {

static_assert(static_cast<int>(TraceKind::kOptimizer) ==
              v1::STEP_ACTIVITY_OPTIMIZER);
static_assert(static_cast<int>(kLastTraceKind) == v1::TRACE_EVENT_KIND_ANSWER);
static_assert(v1::TraceEventKind_MAX == v1::TRACE_EVENT_KIND_ANSWER);

void ToProto(const TraceEvent& event, v1::TraceEvent* proto) {
  proto->set_kind(static_cast<v1::TraceEventKind>(event.kind));
  proto->set_step(event.step + 1);
  if (event.shard >= 0) proto->set_shard(static_cast<uint32_t>(event.shard));
  if (event.block >= 0) proto->set_block(static_cast<uint32_t>(event.block));
  if (event.rank >= 0) proto->set_rank(static_cast<uint32_t>(event.rank));
  proto->set_begin_micros(event.begin_micros);
  proto->set_duration_micros(static_cast<uint64_t>(
      std::max<int64_t>(0, event.end_micros - event.begin_micros)));
  proto->set_bytes(event.bytes);
}

}  // namespace

std::unique_ptr<TraceRecorder> MakeTraceRecorder(const v1::JobSpec& job) {
  const int64_t first = job.trace().first_step();
  const int64_t last = job.trace().last_step();
  if (!job.has_trace() || first < 1 || last < first ||
      last - first >= kMaxTracedSteps) {
    return nullptr;
  }
  return std::make_unique<TraceRecorder>(TraceRecorder::Options{
      .first_step = first - 1,
      .last_step = last - 1,
      .steps_a_contribution = StepCountOf(job).steps_an_update});
}

void TraceSender::TakeEvents() {
  if (!unsent_.events().empty()) return;
  for (const TraceEvent& event : recorder_->Take(kMaxEvents)) {
    ToProto(event, unsent_.add_events());
  }
}

void TraceSender::Fill(v1::HeartbeatRequest* request, int64_t now_micros) {
  reported_ = false;
  const std::optional<ClockOffset::Estimate> estimate = offset_.At(now_micros);
  if (!estimate) return;  // the first answer brings an estimate
  TakeEvents();
  const TraceRecorder::Counts counts = recorder_->counts();
  if (unsent_.events().empty() && counts.dropped == told_dropped_) return;
  unsent_.set_recorded(counts.recorded);
  unsent_.set_dropped(counts.dropped);
  unsent_.set_offset_micros(estimate->offset_micros);
  unsent_.set_uncertainty_micros(estimate->uncertainty_micros);
  unsent_.set_clock(clock_id_);
  *request->mutable_trace() = unsent_;
  if (recorder_->waiting() > 0 && !stalled_) request->set_finished(false);
  reported_ = true;
  stalled_ = true;
}

void TraceSender::OnAnswer(const v1::HeartbeatResponse& answer,
                           int64_t sent_micros, int64_t now_micros) {
  if (answer.answered_micros() > 0) {
    offset_.Add({.sent = sent_micros,
                 .received = answer.received_micros(),
                 .answered = answer.answered_micros(),
                 .returned = now_micros});
  }
  if (!reported_ || !answer.trace_taken()) return;
  stalled_ = false;
  told_dropped_ = unsent_.dropped();
  unsent_.set_first(unsent_.first() +
                    static_cast<uint64_t>(unsent_.events_size()));
  unsent_.clear_events();
}

bool TraceSender::Urgent() const {
  // Without an estimate, or after a report that was not taken, sending again at
  // once would only spin.
  return !stalled_ && offset_.At(0).has_value() &&
         recorder_->waiting() >= kUrgentEvents;
}

}  // namespace tributary
