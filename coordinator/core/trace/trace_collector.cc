// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/trace/trace_collector.h"

#include <algorithm>

namespace tributary {
namespace {

bool IsTime(int64_t micros) {
  return micros >= -ClockOffset::kMaxMicros &&
         micros <= ClockOffset::kMaxMicros;
}

// Returns -1 if the number is absent.
int32_t NumberOf(bool has, uint32_t number) {
  return has ? static_cast<int32_t>(number) : -1;
}

TraceEvent FromProto(const v1::TraceEvent& event) {
  return {.kind = static_cast<TraceKind>(event.kind()),
          .step = event.step() - 1,
          .shard = NumberOf(event.has_shard(), event.shard()),
          .block = NumberOf(event.has_block(), event.block()),
          .rank = NumberOf(event.has_rank(), event.rank()),
          .begin_micros = event.begin_micros(),
          .end_micros = event.begin_micros() +
                        static_cast<int64_t>(event.duration_micros()),
          .bytes = event.bytes()};
}

// The place that the sender holds; null: it holds none.
const Place* PlaceOf(const v1::HeartbeatRequest& request,
                     const Membership& membership) {
  for (const Place& place : membership.places()) {
    if (place.role == request.role() && place.index == request.index() &&
        place.incarnation == request.incarnation() && place.incarnation > 0) {
      return &place;
    }
  }
  return nullptr;
}

}  // namespace

bool TraceCollector::IsPossible(const v1::TraceEvent& event) const {
  const auto servers = static_cast<uint32_t>(job_.cluster().servers());
  const auto workers = static_cast<uint32_t>(job_.cluster().workers());
  return event.kind() >= static_cast<int>(TraceKind::kData) &&
         event.kind() <= static_cast<int>(kLastTraceKind) &&
         event.step() >= job_.trace().first_step() &&
         event.step() <= job_.trace().last_step() &&
         (!event.has_shard() || event.shard() < servers) &&
         (!event.has_block() || event.block() < kMaxNumber) &&
         (!event.has_rank() || event.rank() < workers) &&
         IsTime(event.begin_micros()) &&
         event.duration_micros() <=
             static_cast<uint64_t>(ClockOffset::kMaxMicros);
}

bool TraceCollector::IsPossible(const v1::TraceReport& report) const {
  constexpr auto kMostEvents = static_cast<uint64_t>(ClockOffset::kMaxMicros);
  return static_cast<size_t>(report.events_size()) <= kMaxReported &&
         report.first() <= kMostEvents && report.recorded() <= kMostEvents &&
         report.dropped() <= kMostEvents && IsTime(report.offset_micros()) &&
         IsTime(report.uncertainty_micros()) &&
         report.uncertainty_micros() >= 0 &&
         std::all_of(
             report.events().begin(), report.events().end(),
             [this](const v1::TraceEvent& event) { return IsPossible(event); });
}

bool TraceCollector::Take(const v1::HeartbeatRequest& request,
                          const Membership& membership) {
  if (!request.has_trace() || !job_.has_trace()) return false;
  const Place* const place = PlaceOf(request, membership);
  if (place == nullptr) return false;
  const v1::TraceReport& report = request.trace();
  if (!IsPossible(report)) return true;
  Sender& sender = senders_[{place->role, place->index}];
  if (sender.incarnation != place->incarnation) {
    sender = {.incarnation = place->incarnation};
  }
  // `known` counts the events that an earlier heartbeat has brought. Not all
  // are known when the answer to that heartbeat was lost and more have been
  // recorded since.
  const auto events = static_cast<uint64_t>(report.events_size());
  const uint64_t known =
      std::min(events, sender.next - std::min(sender.next, report.first()));
  const size_t weight = std::max<size_t>(1, events - known);
  if (waiting_ + weight > max_waiting_) return true;
  waiting_ += weight;
  sender.next = std::max(sender.next, report.first() + events);
  TraceBatch& batch = batches_.emplace_back(TraceBatch{
      .role = place->role,
      .index = place->index,
      .incarnation = place->incarnation,
      .host = place->holder.host(),
      .clock = report.clock(),
      .offset = {report.offset_micros(), report.uncertainty_micros()},
      .first = report.first() + known,
      .recorded = report.recorded(),
      .dropped = report.dropped(),
      .events = {}});
  batch.events.reserve(events - known);
  for (uint64_t i = known; i < events; ++i) {
    batch.events.push_back(FromProto(report.events(static_cast<int>(i))));
  }
  return true;
}

}  // namespace tributary
