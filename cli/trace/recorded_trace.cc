// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/recorded_trace.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cli/terminal/json_lines.h"
#include "common/base/limits.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_directory.h"

namespace tributary {
namespace {

using nlohmann::json;

// The integer at `key`, limited to -kMaxStep ... kMaxStep; else `otherwise`.
int64_t Integer(const json& object, const char* key, int64_t otherwise = 0) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return otherwise;
  return std::clamp(it->get<int64_t>(), -kMaxStep, kMaxStep);
}

std::string Text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

// Reads an event: [kind, step, shard, block, rank, begin, end, bytes].
std::optional<TraceEvent> EventOf(const json& fields) {
  if (!fields.is_array() || fields.size() != 8 || !fields[0].is_string()) {
    return std::nullopt;
  }
  int64_t numbers[8] = {};
  for (size_t i = 1; i < 8; ++i) {
    if (!fields[i].is_number_integer()) return std::nullopt;
    numbers[i] = fields[i].get<int64_t>();
    if (numbers[i] < -kMaxStep || numbers[i] > kMaxStep) return std::nullopt;
  }
  const auto kind = TraceKindOf(fields[0].get<std::string>());
  const auto is_number = [](int64_t n) { return n >= -1 && n <= INT32_MAX; };
  if (!kind || numbers[1] < 1 || !is_number(numbers[2]) ||
      !is_number(numbers[3]) || !is_number(numbers[4]) ||
      numbers[6] < numbers[5] || numbers[7] < 0) {
    return std::nullopt;
  }
  return TraceEvent{.kind = *kind,
                    .step = numbers[1] - 1,
                    .shard = static_cast<int32_t>(numbers[2]),
                    .block = static_cast<int32_t>(numbers[3]),
                    .rank = static_cast<int32_t>(numbers[4]),
                    .begin_micros = numbers[5],
                    .end_micros = numbers[6],
                    .bytes = static_cast<uint64_t>(numbers[7])};
}

struct Reading {
  TracedProcess process;
  int64_t next = 0;      // number of the next event
  int64_t recorded = 0;  // of the last line
  int64_t dropped = 0;
  bool has_offset = false;
};

void AddLine(const json& line, Reading* reading) {
  TracedProcess& process = reading->process;
  process.host = Text(line, "host");
  const std::string clock = Text(line, "clock");
  if (clock != "0000000000000000") process.clock = clock;
  const ClockOffset::Estimate offset = {
      Integer(line, "offset_micros"),
      std::max<int64_t>(0, Integer(line, "uncertainty_micros"))};
  if (!reading->has_offset ||
      offset.uncertainty_micros < process.offset.uncertainty_micros) {
    process.offset = offset;
    reading->has_offset = true;
  }
  reading->recorded = std::max(reading->recorded, Integer(line, "recorded"));
  reading->dropped = std::max(reading->dropped, Integer(line, "dropped"));
  const auto events = line.find("events");
  if (events == line.end() || !events->is_array()) return;
  // Another coordinator may have received, and have written, the same events.
  int64_t number = Integer(line, "first");
  for (const json& fields : *events) {
    if (number++ < reading->next) continue;
    reading->next = number;
    if (const auto event = EventOf(fields)) process.events.push_back(*event);
  }
}

// Processes on one clock all estimate the same offset.
void ShareOffsets(std::vector<TracedProcess>* processes) {
  std::map<std::string, ClockOffset::Estimate> best;
  for (const TracedProcess& process : *processes) {
    if (process.clock.empty()) continue;
    const auto [it, first] = best.emplace(process.clock, process.offset);
    if (!first &&
        process.offset.uncertainty_micros < it->second.uncertainty_micros) {
      it->second = process.offset;
    }
  }
  for (TracedProcess& process : *processes) {
    if (!process.clock.empty()) process.offset = best[process.clock];
  }
}

}  // namespace

std::string TracedProcess::Name() const {
  return absl::StrCat(is_server ? "server " : "worker ", index);
}

std::set<int64_t> RecordedTrace::Steps() const {
  std::set<int64_t> steps;
  for (const TracedProcess& process : processes) {
    for (const TraceEvent& event : process.events) {
      steps.insert(event.step + 1);
    }
  }
  return steps;
}

uint64_t RecordedTrace::lost() const {
  uint64_t lost = 0;
  for (const TracedProcess& process : processes) lost += process.lost;
  return lost;
}

absl::StatusOr<RecordedTrace> ReadRecordedTrace(const std::string& folder) {
  const std::string path = folder + RunDirectory::kTraceFile;
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("there is no ", path));
  }
  RecordedTrace trace;
  // Servers before workers.
  std::map<std::tuple<bool, int64_t, int64_t>, Reading> readings;
  TRIBUTARY_RETURN_IF_ERROR(ForEachJsonLine(path, [&](const json& line) {
    if (line.contains("full")) trace.full = true;
    const std::string role = Text(line, "role");
    if (role != "server" && role != "worker") return;
    const int64_t index = Integer(line, "index");
    const int64_t incarnation = Integer(line, "incarnation");
    Reading& reading = readings[{role == "worker", index, incarnation}];
    reading.process.is_server = role == "server";
    reading.process.index = static_cast<int>(index);
    reading.process.incarnation = static_cast<uint64_t>(incarnation);
    AddLine(line, &reading);
  }));
  for (auto& [place, reading] : readings) {
    const auto present = static_cast<int64_t>(reading.process.events.size());
    reading.process.lost = static_cast<uint64_t>(
        reading.dropped + std::max<int64_t>(0, reading.recorded - present));
    trace.processes.push_back(std::move(reading.process));
  }
  ShareOffsets(&trace.processes);
  return trace;
}

}  // namespace tributary
