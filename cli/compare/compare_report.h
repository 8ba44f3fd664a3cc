// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compare/run_data.h"

namespace tributary {

// How the time of a step is spent, in seconds; the parts add up to `step`.
struct StepParts {
  double step = 0;
  double data = 0;           // waiting for a batch
  double compute = 0;        // forward and backward
  double communication = 0;  // not hidden by computing
  double waiting = 0;        // for slower workers
  double optimizer = 0;      // not hidden by computing
};

// One step in the timeline chart: a row for each rank, in milliseconds since
// the earliest rank began.
struct DrawnSpan {
  // As in StepParts, with compute split into "forward" and "backward".
  // `beside`: the activity ran at the same time on another thread.
  std::string activity;
  bool beside = false;
  double begin_ms = 0;
  double end_ms = 0;
};
struct DrawnRank {
  int rank = 0;
  std::vector<DrawnSpan> spans;
};
struct DrawnStep {
  int64_t step = 0;
  std::vector<DrawnRank> ranks;
};

struct LossPoint {
  int64_t step = 0;
  double loss = 0;
};

// One run of the comparison.
struct CompareRow {
  std::string name;  // of the strategy
  int workers = 0;
  int servers = 0;
  std::string folder;
  std::string status;   // "done", "interrupted", "failed"
  std::string message;  // why a run is not done
  int64_t steps = 0;
  // The median step after the warm-up, and its parts; nullopt: no steps.
  std::optional<StepParts> parts;
  std::optional<double> predicted_step_seconds;  // by the cost model
  double samples_per_second = 0;
  double bytes_sent = 0;  // payload per step, mean of the workers
  double bytes_received = 0;
  std::optional<uint64_t> worker_peak_bytes;  // the maximum over processes
  std::optional<uint64_t> server_peak_bytes;
  std::optional<double> loss;             // of the last step
  std::optional<double> metric;           // of the last evaluation
  std::optional<double> weight_distance;  // from the single process
  std::vector<LossPoint> losses;
  std::optional<DrawnStep> drawn;  // a step of typical duration
};

struct CompareReport {
  // The runs differ only in strategy, cluster and checkpoints. Otherwise there
  // is no single process to compare the others with.
  bool one_job = true;
  std::string job_name;
  int64_t global_batch = 0;  // samples per micro-batch over all workers
  int64_t parameters = 0;    // elements; 0: unknown
  int64_t warmup_steps = 0;
  uint64_t seed = 0;
  std::string metric_name;       // "accuracy"; empty: no run was evaluated
  std::string metric_set;        // "test"; empty: runs differ in it
  std::string version;           // of Tributary
  std::vector<CompareRow> rows;  // the single process first, if there is one
  std::vector<std::string> notes;
};

// The number of steps that a median leaves out: the first fifth, at most ten.
int64_t WarmupSteps(int64_t steps);

// The median step after the warm-up. Its parts are means over the half of the
// steps with the most central times, scaled to add up to the median.
// `server_optimizer_seconds`: the optimizer time of a step on the busiest
// server.
std::optional<StepParts> MedianParts(const std::vector<RunData::Step>& steps,
                                     int64_t warmup_steps,
                                     double server_optimizer_seconds);

// The drawn step after the warm-up whose duration is nearest to `step_seconds`.
// In `gathered` steps (all ranks' gradients go into one update), a rank's wait
// until the slowest rank has computed is shown as "waiting".
std::optional<DrawnStep> TypicalStep(const RunData& run, int64_t warmup_steps,
                                     double step_seconds, bool gathered);

// Makes the report from runs of one job under different strategies, or of jobs
// with different settings. For one job, the single process is the first run
// with one worker; all other runs are compared with it. For different settings,
// a note names the first setting that differs, and the rows have the names of
// their folders. A note also tells of data or initial weights that differ.
// InvalidArgument: there are no runs. A failed run is a row with its message.
absl::StatusOr<CompareReport> MakeCompareReport(
    const std::vector<RunData>& runs);

}  // namespace tributary
