// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/member/step_seconds.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The contents of a run directory (docs/run-directory.md).
struct RunData {
  struct Step {
    int64_t step = 0;
    // NaN for null; nullopt if no rank reported one, or a rank's report is
    // lost.
    std::optional<double> loss;
    double samples = 0;
    StepSeconds seconds;
    double peer_seconds = 0;
    double bytes_sent = 0;
    double bytes_received = 0;
  };
  struct Process {
    std::string role;  // "coordinator", "server", "worker"
    int index = 0;
    uint64_t peak_memory_bytes = 0;
    double optimizer_seconds = 0;  // of a server
  };
  struct Span {
    std::string activity;
    int64_t begin_micros = 0;  // since the step's start
    int64_t end_micros = 0;
  };
  struct RankTimeline {
    int rank = 0;
    int64_t begin_micros = 0;  // since the earliest rank's start
    int64_t step_micros = 0;
    std::vector<Span> spans;
  };
  struct Timeline {
    int64_t step = 0;
    std::vector<RankTimeline> ranks;
  };

  std::string folder;
  v1::JobSpec job;      // resolved
  std::string status;   // "done", "interrupted", "failed"; empty: no summary
  std::string message;  // why a run failed
  std::string started;
  std::vector<Step> steps;
  std::vector<Timeline> timelines;
  std::vector<Process> processes;
  // The last evaluation and its set: "test", or "validation" for a run that has
  // no test set; empty: there was no evaluation.
  std::map<std::string, double> metrics;
  std::string evaluated_set;
  bool has_weights = false;
  // The checksums of what the run has read, as in environment.json, by "train",
  // "validation", "test" and "initial_weights".
  std::map<std::string, std::string> checksums;
  // Predicted by the cost model, if prediction.json exists.
  std::optional<double> predicted_step_seconds;
};

// NotFound: it is not a run directory. InvalidArgument: a file in it is
// damaged; the message names file and line. An unfinished last line is ignored.
absl::StatusOr<RunData> ReadRun(const std::string& folder);

// Says which data or initial weights differ between two runs, by their
// checksums; empty: none differ, or it is unknown.
std::string DataDifference(const RunData& a, const RunData& b);

}  // namespace tributary
