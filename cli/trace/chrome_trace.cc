// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/trace/trace_slices.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

struct DrawnProcess {
  const TracedProcess* process;
  std::vector<TraceLane> lanes;
};

// The point where an arrow begins or ends.
struct Point {
  int pid;
  int tid;
  int64_t micros;  // since the first event
};
using PushKey = std::tuple<int64_t, int, int, int>;  // step, shard, block, rank
using Points = std::map<PushKey, std::vector<Point>>;

Json ArgumentsOf(const TraceSlice& slice) {
  const TraceEvent& event = slice.event;
  Json args = {{"step", event.step + 1}};
  if (event.shard >= 0) args["server"] = event.shard;
  if (event.block >= 0) args["block"] = event.block;
  if (event.rank >= 0) args["rank"] = event.rank;
  if (!slice.ranks.empty()) args["ranks"] = slice.ranks;
  if (event.bytes > 0) args["bytes"] = event.bytes;
  return args;
}

// Writes one event after the other: a long trace as one JSON value would take
// many times the memory of its text.
class Writer {
 public:
  explicit Writer(int64_t zero_micros) : zero_micros_(zero_micros) {}

  void Process(int pid, const TracedProcess& process, bool is_again) {
    std::string name = process.Name();
    if (!process.host.empty()) absl::StrAppend(&name, " on ", process.host);
    if (is_again) {
      absl::StrAppend(&name, ", incarnation ", process.incarnation);
    }
    Metadata("process_name", pid, 0, {{"name", name}});
    Metadata("process_sort_index", pid, 0, {{"sort_index", pid}});
    Metadata("process_labels", pid, 0,
             {{"labels",
               absl::StrCat("clock ", process.offset.offset_micros, " us, +-",
                            process.offset.uncertainty_micros)}});
  }

  void Lane(int pid, int tid, const TraceLane& lane) {
    Metadata("thread_name", pid, tid, {{"name", lane.name}});
    Metadata("thread_sort_index", pid, tid, {{"sort_index", tid}});
    for (const SliceGroup& group : lane.groups) {
      for (const TraceSlice& slice : group) Slice(pid, tid, slice);
    }
  }

  // Arrows between the points of a push, and of an answer, at both ends.
  void Arrows(const std::string& name, const Points& from, const Points& to) {
    for (const auto& [key, begins] : from) {
      const auto ends = to.find(key);
      if (ends == to.end()) continue;
      const size_t count = std::min(begins.size(), ends->second.size());
      for (size_t i = 0; i < count; ++i) {
        ++arrows_;
        Arrow("s", name, begins[i]);
        Arrow("f", name, ends->second[i]);
      }
    }
  }

  // Points of the worker's flights and stores, and of the server's checks and
  // answers.
  Points sent, stored, arrived, answered;

  std::string Finish(const Json& other) {
    return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":",
                        Text(other), ",\"traceEvents\":[\n", text_, "\n]}\n");
  }

  void SetWorker(int rank) { rank_ = rank; }

 private:
  static std::string Text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void Add(const Json& event) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",\n", Text(event));
  }

  void Metadata(const char* name, int pid, int tid, Json args) {
    Add({{"ph", "M"},
         {"name", name},
         {"pid", pid},
         {"tid", tid},
         {"args", std::move(args)}});
  }

  void Slice(int pid, int tid, const TraceSlice& slice) {
    const TraceEvent& event = slice.event;
    const int64_t begin = event.begin_micros - zero_micros_;
    Add({{"ph", "X"},
         {"name", slice.name},
         {"cat", slice.category},
         {"pid", pid},
         {"tid", tid},
         {"ts", begin},
         {"dur", event.end_micros - event.begin_micros},
         {"args", ArgumentsOf(slice)}});
    if (slice.category != TraceKindName(event.kind)) return;
    const int rank = event.rank >= 0 ? event.rank : rank_;
    Points* const points = event.kind == TraceKind::kFlight   ? &sent
                           : event.kind == TraceKind::kStore  ? &stored
                           : event.kind == TraceKind::kCheck  ? &arrived
                           : event.kind == TraceKind::kAnswer ? &answered
                                                              : nullptr;
    if (points == nullptr) return;
    (*points)[{event.step, event.shard, event.block, rank}].push_back(
        {pid, tid, begin});
  }

  void Arrow(const char* phase, const std::string& name, const Point& point) {
    Json event = {{"ph", phase},       {"name", name},     {"cat", "flow"},
                  {"id", arrows_},     {"pid", point.pid}, {"tid", point.tid},
                  {"ts", point.micros}};
    if (*phase == 'f') event["bp"] = "e";  // to the slice around this time
    Add(event);
  }

  const int64_t zero_micros_;
  int rank_ = -1;
  int64_t arrows_ = 0;
  std::string text_;
};

int64_t FirstMicros(const std::vector<DrawnProcess>& drawn) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const DrawnProcess& process : drawn) {
    for (const TraceLane& lane : process.lanes) {
      first = std::min(first, lane.groups.front()[0].event.begin_micros);
    }
  }
  return first == std::numeric_limits<int64_t>::max() ? 0 : first;
}

Json OtherData(const RecordedTrace& trace, const StepNumbers& steps) {
  Json clocks = Json::array();
  for (const TracedProcess& process : trace.processes) {
    clocks.push_back(
        {{"process", process.Name()},
         {"incarnation", process.incarnation},
         {"host", process.host},
         {"offset_micros", process.offset.offset_micros},
         {"uncertainty_micros", process.offset.uncertainty_micros}});
  }
  return {{"first_step", steps.first},
          {"last_step", steps.last},
          {"lost_events", trace.lost()},
          {"clocks", std::move(clocks)}};
}

}  // namespace

std::string ChromeTrace(const RecordedTrace& trace, const StepNumbers& steps) {
  std::vector<DrawnProcess> drawn;
  for (const TracedProcess& process : trace.processes) {
    drawn.push_back({&process, LanesOf(process, steps)});
  }
  Writer writer(FirstMicros(drawn));
  int pid = 0;
  std::string before;
  for (const DrawnProcess& process : drawn) {
    const std::string name = process.process->Name();
    writer.Process(++pid, *process.process, name == before);
    before = name;
    writer.SetWorker(process.process->is_server ? -1 : process.process->index);
    int tid = 0;
    for (const TraceLane& lane : process.lanes) writer.Lane(pid, ++tid, lane);
  }
  writer.Arrows("push", writer.sent, writer.arrived);
  writer.Arrows("answer", writer.answered, writer.stored);
  return writer.Finish(OtherData(trace, steps));
}

}  // namespace tributary
