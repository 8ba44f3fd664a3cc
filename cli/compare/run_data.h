#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// What a run directory says of its run (docs/formats.md, the run directory).
struct RunData {
  struct Step {
    int64_t step = 0;
    double loss = 0;  // NaN where it is no number
    double samples = 0;
    double step_seconds = 0;
    double data_seconds = 0;
    double compute_seconds = 0;
    double push_seconds = 0;
    double exchange_seconds = 0;
    double idle_seconds = 0;
    double wait_seconds = 0;
    double peer_seconds = 0;
    double optimizer_seconds = 0;
    double bytes_sent = 0;
    double bytes_received = 0;
  };
  struct Process {
    std::string role;  // "coordinator", "server", "worker"
    int index = 0;
    uint64_t peak_memory_bytes = 0;
    double optimizer_seconds = 0;  // a server's
  };
  struct Span {
    std::string activity;
    int64_t begin_micros = 0;  // since the step's begin
    int64_t end_micros = 0;
  };
  struct RankTimeline {
    int rank = 0;
    int64_t begin_micros = 0;  // since the earliest rank's begin
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
  std::string message;  // of a failed run
  std::string started;
  std::vector<Step> steps;
  std::vector<Timeline> timelines;
  std::vector<Process> processes;
  std::map<std::string, double> test;  // the last evaluation
  bool has_weights = false;
  // By the cost model, where somebody has asked it (prediction.json).
  std::optional<double> predicted_step_seconds;
};

// NotFound: it is no run directory. InvalidArgument: a file of it is damaged;
// names file and line. A last line without its end is left out.
absl::StatusOr<RunData> ReadRun(const std::string& folder);

}  // namespace tributary
