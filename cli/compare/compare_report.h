#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/compare/run_data.h"

namespace tributary {

// Where the time of a step goes, in seconds; the parts add up to `step`.
struct StepParts {
  double step = 0;
  double data = 0;           // waiting for a batch
  double compute = 0;        // forward and backward
  double communication = 0;  // that no computing hides
  double waiting = 0;        // for slower workers
  double optimizer = 0;      // that no computing hides
};

// One step as it is drawn: a row for each rank, milliseconds since the earliest
// rank began.
struct DrawnSpan {
  // As in StepParts, with compute as "forward" and "backward"; those `beside`
  // went on at the same time, on another thread.
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
  std::string message;  // of a run that is not done
  int64_t steps = 0;
  // Of the steps after the warm-up, where there are some: the median step, and
  // its parts.
  std::optional<StepParts> parts;
  std::optional<double> predicted_step_seconds;  // by the cost model
  double samples_per_second = 0;
  double bytes_sent = 0;  // payloads of a step, by a worker: the mean over them
  double bytes_received = 0;
  std::optional<uint64_t> worker_peak_bytes;  // the greatest of its processes
  std::optional<uint64_t> server_peak_bytes;
  std::optional<double> loss;             // of the last step
  std::optional<double> metric;           // of the last evaluation
  std::optional<double> weight_distance;  // from the single process
  std::vector<LossPoint> losses;
  std::optional<DrawnStep> drawn;  // a step whose time is typical
};

struct CompareReport {
  std::string job_name;
  int64_t global_batch = 0;  // samples a micro-batch, of all workers
  int64_t parameters = 0;    // elements; 0: not known
  int64_t warmup_steps = 0;
  uint64_t seed = 0;
  std::string metric_name;       // "accuracy"; empty: the job has no test set
  std::string version;           // of Tributary
  std::vector<CompareRow> rows;  // the single process first, if it is there
  std::vector<std::string> notes;
};

// The steps that a median leaves out: the first fifth, at most ten.
int64_t WarmupSteps(int64_t steps);

// The median step of those after the warm-up and its parts: means over the
// middle half of the steps, by their time, scaled to add up to the median.
// `server_optimizer_seconds`: a step's updates on the busiest server.
std::optional<StepParts> MedianParts(const std::vector<RunData::Step>& steps,
                                     int64_t warmup_steps,
                                     double server_optimizer_seconds);

// The drawn step after the warm-up whose time is nearest to `step_seconds`.
// In `gathered` steps (all ranks' gradients go into one update) what a rank
// waits until the slowest has computed is "waiting".
std::optional<DrawnStep> TypicalStep(const RunData& run, int64_t warmup_steps,
                                     double step_seconds, bool gathered);

// From runs of one job under different strategies. The single process is the
// first that has one worker, and everything is measured from it.
// InvalidArgument: no runs, or not of one job. A run that has failed is a row
// with its message.
absl::StatusOr<CompareReport> MakeCompareReport(
    const std::vector<RunData>& runs);

}  // namespace tributary
