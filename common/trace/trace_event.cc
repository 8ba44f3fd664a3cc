// SPDX-License-Identifier: Apache-2.0
#include "common/trace/trace_event.h"

#include <array>

namespace tributary {
namespace {

// The names by the numbers of their kinds.
constexpr std::array<absl::string_view, static_cast<int>(kLastTraceKind) + 1>
    kNames = {"",          "data",    "forward", "backward",
              "exchange",  "idle",    "wait",    "communication",
              "optimizer", "queue",   "flight",  "store",
              "check",     "average", "update",  "answer"};

}  // namespace

absl::string_view TraceKindName(TraceKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

std::optional<TraceKind> TraceKindOf(absl::string_view name) {
  for (size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<TraceKind>(i);
  }
  return std::nullopt;
}

}  // namespace tributary
