// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tributary {

// An activity or a wait of a process in a traced step. The numbers equal those
// of v1::TraceEventKind; the first eight also equal those of v1::StepActivity.
enum class TraceKind : uint8_t {
  kData = 1,
  kForward,
  kBackward,
  kExchange,
  kIdle,
  kWait,
  kCommunication,
  kOptimizer,
  kQueue,    // a worker's block was handed over and is not sent yet
  kFlight,   // it was sent and is not answered yet
  kStore,    // the answer's weights go into the model
  kCheck,    // a server checks a contribution, from its arrival
  kAverage,  // it adds contributions, whose update comes later
  kUpdate,   // it adds contributions and applies them
  kAnswer,   // it makes and sends the answer to a rank
};

inline constexpr auto kLastTraceKind = TraceKind::kAnswer;

// "forward", "check": the names in trace.jsonl.
absl::string_view TraceKindName(TraceKind kind);
std::optional<TraceKind> TraceKindOf(absl::string_view name);

// Activities of the thread that trains; they follow one another.
constexpr bool IsTrainingThread(TraceKind kind) {
  return kind <= TraceKind::kWait;
}

// One event of one process, by its own monotonic clock. -1: the event concerns
// no shard, block or rank.
struct TraceEvent {
  TraceKind kind = TraceKind::kData;
  int64_t step = 0;  // from 0
  int32_t shard = -1;
  int32_t block = -1;
  int32_t rank = -1;
  int64_t begin_micros = 0;
  int64_t end_micros = 0;
  uint64_t bytes = 0;  // of the payload

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// Most steps that a job may trace.
inline constexpr int64_t kMaxTracedSteps = 1000;

}  // namespace tributary
