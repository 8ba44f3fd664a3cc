// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/trace_slices.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {
namespace {

std::string NameOf(const TraceEvent& event) {
  const std::string of_block = absl::StrCat("block ", event.block);
  switch (event.kind) {
    case TraceKind::kQueue:
      return "waits to be sent";
    case TraceKind::kFlight:
      return "sent, not answered";
    case TraceKind::kStore:
      return "weights into the model";
    case TraceKind::kCheck:
      return absl::StrCat("check rank ", event.rank, ", ", of_block);
    case TraceKind::kAverage:
      return absl::StrCat("sum ", of_block);
    case TraceKind::kUpdate:
      return absl::StrCat("sum and update ", of_block);
    case TraceKind::kAnswer:
      return absl::StrCat("answer rank ", event.rank, ", ", of_block);
    default:
      return std::string(TraceKindName(event.kind));
  }
}

TraceSlice SliceOf(const TraceEvent& event) {
  return {.name = NameOf(event),
          .category = std::string(TraceKindName(event.kind)),
          .event = event,
          .ranks = {}};
}

// Returns a slice that spans all of `inner`, which is not empty.
TraceSlice Around(const std::vector<TraceSlice>& inner, std::string name,
                  std::string category) {
  TraceSlice outer{.name = std::move(name),
                   .category = std::move(category),
                   .event = inner.front().event,
                   .ranks = {}};
  for (const TraceSlice& slice : inner) {
    outer.event.begin_micros =
        std::min(outer.event.begin_micros, slice.event.begin_micros);
    outer.event.end_micros =
        std::max(outer.event.end_micros, slice.event.end_micros);
  }
  return outer;
}

// Puts each group on the first lane that is free again.
void AddLanes(const std::string& name, std::vector<SliceGroup> groups,
              std::vector<TraceLane>* lanes) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const SliceGroup& a, const SliceGroup& b) {
                     return a[0].event.begin_micros < b[0].event.begin_micros;
                   });
  std::vector<TraceLane> own;
  for (SliceGroup& group : groups) {
    const auto free =
        std::find_if(own.begin(), own.end(), [&group](const TraceLane& lane) {
          return lane.groups.back()[0].event.end_micros <=
                 group[0].event.begin_micros;
        });
    TraceLane* lane = free == own.end() ? nullptr : &*free;
    if (lane == nullptr) {
      own.push_back(
          {own.empty() ? name : absl::StrCat(name, " ", own.size() + 1), {}});
      lane = &own.back();
    }
    lane->groups.push_back(std::move(group));
  }
  std::move(own.begin(), own.end(), std::back_inserter(*lanes));
}

using BlockOfStep = std::tuple<int64_t, int, int>;  // step, shard, block

BlockOfStep KeyOf(const TraceEvent& event) {
  return {event.step, event.shard, event.block};
}

// The training thread's activities, a group for each step.
std::vector<SliceGroup> StepGroups(const std::vector<TraceEvent>& events) {
  std::vector<SliceGroup> groups;
  for (size_t i = 0; i < events.size();) {
    const int64_t step = events[i].step;
    std::vector<TraceSlice> inner;
    for (; i < events.size() && events[i].step == step; ++i) {
      inner.push_back(SliceOf(events[i]));
    }
    SliceGroup group = {Around(inner, absl::StrCat("step ", step + 1), "step")};
    group.insert(group.end(), inner.begin(), inner.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

// The paths of blocks to their servers and back. A step that is computed again
// sends its blocks again.
std::vector<SliceGroup> PushGroups(const std::vector<TraceEvent>& events) {
  std::vector<std::vector<TraceSlice>> pushes;
  std::map<BlockOfStep, size_t> newest;
  for (const TraceEvent& event : events) {
    const auto known = newest.find(KeyOf(event));
    if (event.kind == TraceKind::kQueue || known == newest.end()) {
      newest[KeyOf(event)] = pushes.size();
      pushes.push_back({SliceOf(event)});
    } else {
      pushes[known->second].push_back(SliceOf(event));
    }
  }
  std::vector<SliceGroup> groups;
  for (const std::vector<TraceSlice>& push : pushes) {
    const TraceEvent& event = push.front().event;
    SliceGroup group = {Around(
        push, absl::StrCat("block ", event.block, " of server ", event.shard),
        "push")};
    group.insert(group.end(), push.begin(), push.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

TraceSlice Wait(const TraceEvent& like, int64_t begin_micros,
                int64_t end_micros, std::string name, std::vector<int> ranks) {
  TraceSlice wait{.name = std::move(name),
                  .category = "wait",
                  .event = like,
                  .ranks = std::move(ranks)};
  wait.event.begin_micros = begin_micros;
  wait.event.end_micros = end_micros;
  wait.event.bytes = 0;
  return wait;
}

// Adds the wait from the first contribution to the arrival of the last one.
// `checks`: the contributions to one update, in order.
void AddWaitForRanks(const std::vector<TraceEvent>& checks,
                     std::vector<SliceGroup>* groups) {
  if (checks.empty()) return;
  const TraceEvent& first = checks.front();
  const int64_t end = checks.back().begin_micros;
  std::set<int> late;
  for (const TraceEvent& check : checks) late.insert(check.rank);
  late.erase(first.rank);
  if (late.empty() || end <= first.end_micros) return;
  TraceEvent like = first;
  like.rank = -1;
  groups->push_back(
      {Wait(like, first.end_micros, end,
            absl::StrCat("block ", first.block, " waits for rank ",
                         absl::StrJoin(late, ", ")),
            {late.begin(), late.end()})});
}

// The waits of a server's blocks, from its events in order of time.
std::vector<SliceGroup> WaitGroups(const std::vector<TraceEvent>& events) {
  struct Block {
    std::vector<TraceEvent> checks;  // since the last update
    std::map<int, int64_t> applied;  // end of each rank's own update
  };
  std::vector<SliceGroup> groups;
  std::map<BlockOfStep, Block> blocks;
  for (const TraceEvent& event : events) {
    Block& block = blocks[KeyOf(event)];
    if (event.kind == TraceKind::kCheck) {
      block.checks.push_back(event);
    } else if (event.kind == TraceKind::kAnswer) {
      const auto own = block.applied.find(event.rank);
      if (own == block.applied.end()) continue;
      if (own->second < event.begin_micros) {
        groups.push_back(
            {Wait(event, own->second, event.begin_micros,
                  absl::StrCat("rank ", event.rank, ", block ", event.block,
                               ", waits for slower ranks"),
                  {})});
      }
      block.applied.erase(own);
    } else if (event.rank >= 0) {  // applied by itself
      block.applied[event.rank] = event.end_micros;
      block.checks.clear();
    } else {
      AddWaitForRanks(block.checks, &groups);
      block.checks.clear();
    }
  }
  return groups;
}

std::vector<SliceGroup> Singles(const std::vector<TraceEvent>& events) {
  std::vector<SliceGroup> groups;
  for (const TraceEvent& event : events) groups.push_back({SliceOf(event)});
  return groups;
}

}  // namespace

std::vector<TraceLane> LanesOf(const TracedProcess& process,
                               const StepNumbers& steps) {
  std::vector<TraceEvent> training, communication, optimizer, pushes, work;
  std::set<int64_t> pushed;  // steps whose communication the pushes show
  for (TraceEvent event : process.events) {
    if (event.step + 1 < steps.first || event.step + 1 > steps.last) continue;
    event.begin_micros += process.offset.offset_micros;
    event.end_micros += process.offset.offset_micros;
    if (IsTrainingThread(event.kind)) {
      training.push_back(event);
    } else if (event.kind == TraceKind::kCommunication) {
      communication.push_back(event);
    } else if (event.kind == TraceKind::kOptimizer) {
      optimizer.push_back(event);
    } else if (event.kind <= TraceKind::kStore) {
      pushes.push_back(event);
      pushed.insert(event.step);
    } else {
      work.push_back(event);
    }
  }
  for (std::vector<TraceEvent>* events : {&training, &pushes, &work}) {
    std::stable_sort(events->begin(), events->end(),
                     [](const TraceEvent& a, const TraceEvent& b) {
                       return a.begin_micros < b.begin_micros;
                     });
  }
  std::erase_if(communication, [&pushed](const TraceEvent& event) {
    return pushed.contains(event.step);
  });
  std::vector<TraceLane> lanes;
  AddLanes("training", StepGroups(training), &lanes);
  AddLanes("optimizer", Singles(optimizer), &lanes);
  AddLanes("communication", Singles(communication), &lanes);
  AddLanes("blocks", PushGroups(pushes), &lanes);
  AddLanes("work", Singles(work), &lanes);
  AddLanes("waits", WaitGroups(work), &lanes);
  return lanes;
}

}  // namespace tributary
