// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_report.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/compare/compared_metric.h"
#include "cli/compare/strategy_name.h"
#include "cli/compare/weight_distance.h"
#include "common/base/version.h"
#include "common/files/safetensors.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kMostWarmupSteps = 10;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::vector<RunData::Step> AfterWarmup(const std::vector<RunData::Step>& steps,
                                       int64_t warmup_steps) {
  const auto skip =
      std::min<int64_t>(warmup_steps, static_cast<int64_t>(steps.size()));
  return {steps.begin() + skip, steps.end()};
}

template <typename Value>
double MedianOf(const std::vector<RunData::Step>& steps, Value value) {
  std::vector<double> values;
  for (const RunData::Step& step : steps) {
    values.push_back(std::invoke(value, step));
  }
  return values.empty() ? 0 : Median(std::move(values));
}

StepParts PartsOf(const RunData::Step& step, double server_optimizer) {
  StepParts parts;
  parts.step = step.seconds.step;
  parts.data = step.seconds.data;
  parts.compute = step.seconds.compute;
  parts.waiting = step.peer_seconds + step.seconds.idle;
  // The rest of the wait, after the slowest worker has computed.
  const double rest = std::max(0.0, step.seconds.wait - step.peer_seconds);
  parts.optimizer =
      std::min(rest, std::max(step.seconds.optimizer, server_optimizer));
  parts.communication =
      step.seconds.push + step.seconds.exchange + rest - parts.optimizer;
  return parts;
}

constexpr double StepParts::*kAllParts[] = {
    &StepParts::data, &StepParts::compute, &StepParts::communication,
    &StepParts::waiting, &StepParts::optimizer};

bool Gathers(const v1::JobSpec& job) {
  return SyncTraitsOf(job).mode != ApplyMode::kSeparate;
}

}  // namespace

int64_t WarmupSteps(int64_t steps) {
  return std::min(kMostWarmupSteps, steps / 5);
}

std::optional<StepParts> MedianParts(const std::vector<RunData::Step>& all,
                                     int64_t warmup_steps,
                                     double server_optimizer_seconds) {
  std::vector<RunData::Step> steps = AfterWarmup(all, warmup_steps);
  if (steps.empty()) return std::nullopt;
  const double median = MedianOf(
      steps, [](const RunData::Step& step) { return step.seconds.step; });
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
    return a.seconds.step < b.seconds.step;
  });
  const size_t cut = steps.size() / 4;
  StepParts sum;
  for (size_t i = cut; i < steps.size() - cut; ++i) {
    const StepParts parts = PartsOf(steps[i], server_optimizer_seconds);
    for (const auto part : kAllParts) sum.*part += parts.*part;
  }
  double total = 0;
  for (const auto part : kAllParts) total += sum.*part;
  StepParts parts;
  parts.step = median;
  for (const auto part : kAllParts) {
    parts.*part = total > 0 ? median * sum.*part / total : 0;
  }
  return parts;
}

// ---- one step, drawn

namespace {

const RunData::Timeline* NearestTimeline(const RunData& run,
                                         int64_t warmup_steps,
                                         double step_seconds) {
  const RunData::Timeline* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const RunData::Timeline& timeline : run.timelines) {
    if (timeline.step <= warmup_steps || timeline.ranks.empty()) continue;
    double micros = 0;
    for (const RunData::RankTimeline& rank : timeline.ranks) {
      micros += static_cast<double>(rank.step_micros);
    }
    micros /= static_cast<double>(timeline.ranks.size());
    const double distance = std::abs(micros - 1e6 * step_seconds);
    if (distance < least) {
      least = distance;
      nearest = &timeline;
    }
  }
  return nearest;
}

bool IsBeside(const std::string& activity) {
  return activity == "communication" || activity == "optimizer";
}

// Returns the latest time at which a rank began to wait for messages.
int64_t LastComputed(const RunData::Timeline& timeline) {
  int64_t last = 0;
  for (const RunData::RankTimeline& rank : timeline.ranks) {
    for (const RunData::Span& span : rank.spans) {
      if (span.activity == "wait") {
        last = std::max(last, rank.begin_micros + span.begin_micros);
      }
    }
  }
  return last;
}

DrawnRank DrawRank(const RunData::RankTimeline& rank, int64_t computed) {
  DrawnRank drawn{.rank = rank.rank};
  const auto add = [&drawn](const std::string& activity, int64_t begin,
                            int64_t end) {
    if (begin >= end) return;
    drawn.spans.push_back({activity, IsBeside(activity),
                           1e-3 * static_cast<double>(begin),
                           1e-3 * static_cast<double>(end)});
  };
  for (const RunData::Span& span : rank.spans) {
    const int64_t begin = rank.begin_micros + span.begin_micros;
    const int64_t end = rank.begin_micros + span.end_micros;
    if (span.activity == "wait") {
      const int64_t middle = std::clamp(computed, begin, end);
      add("waiting", begin, middle);
      add("exposed", middle, end);
    } else if (span.activity == "idle") {
      add("waiting", begin, end);
    } else if (span.activity == "exchange") {
      add("exposed", begin, end);
    } else {
      add(span.activity, begin, end);
    }
  }
  return drawn;
}

}  // namespace

std::optional<DrawnStep> TypicalStep(const RunData& run, int64_t warmup_steps,
                                     double step_seconds, bool gathered) {
  const RunData::Timeline* timeline =
      NearestTimeline(run, warmup_steps, step_seconds);
  if (timeline == nullptr) return std::nullopt;
  const int64_t computed = gathered ? LastComputed(*timeline) : 0;
  DrawnStep drawn{.step = timeline->step};
  for (const RunData::RankTimeline& rank : timeline->ranks) {
    drawn.ranks.push_back(DrawRank(rank, computed));
  }
  return drawn;
}

// ---- all runs

namespace {

// Returns the part of a job that is equal in all runs of one job.
v1::JobSpec Essence(const v1::JobSpec& job) {
  v1::JobSpec essence = job;
  if (job.data().batch_size() > 0) {
    essence.mutable_data()->set_global_batch_size(job.data().batch_size() *
                                                  StrategyOf(job).mesh().data);
  }
  essence.clear_name();
  essence.clear_strategy();
  essence.clear_cluster();
  essence.clear_checkpoint();
  return essence;
}

// "modified: seed: 1 -> 2"; empty: both are runs of one job.
std::string FirstDifference(const RunData& a, const RunData& b) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(Essence(a.job), Essence(b.job))) return "";
  return std::vector<std::string>(absl::StrSplit(differences, '\n'))[0];
}

// "parameter_server lr0.003"
std::string NameWithFolder(const RunData& run) {
  std::filesystem::path folder = run.folder;
  if (!folder.has_filename()) folder = folder.parent_path();  // a trailing "/"
  return absl::StrCat(StrategyNameOf(run.job), " ", folder.filename().string());
}

void FillProcesses(const RunData& run, CompareRow* row,
                   double* server_optimizer_seconds) {
  const auto keep_greater = [](std::optional<uint64_t>* most, uint64_t bytes) {
    if (bytes > 0) *most = std::max(most->value_or(0), bytes);
  };
  double busiest = 0;
  for (const RunData::Process& process : run.processes) {
    if (process.role == "worker") {
      keep_greater(&row->worker_peak_bytes, process.peak_memory_bytes);
    } else if (process.role == "server") {
      keep_greater(&row->server_peak_bytes, process.peak_memory_bytes);
      busiest = std::max(busiest, process.optimizer_seconds);
    }
  }
  *server_optimizer_seconds =
      run.steps.empty() ? 0 : busiest / static_cast<double>(run.steps.size());
}

// A rank that sends and receives nothing waits, after backward, only for its
// own update.
void CountNoCommunication(CompareRow* row) {
  if (row->parts) {
    row->parts->optimizer += std::exchange(row->parts->communication, 0);
  }
  if (!row->drawn) return;
  for (DrawnRank& rank : row->drawn->ranks) {
    // The update is part of this wait.
    std::erase_if(rank.spans, [](const DrawnSpan& span) {
      return span.activity == "optimizer";
    });
    for (DrawnSpan& span : rank.spans) {
      if (span.activity == "exposed") span.activity = "optimizer";
    }
  }
}

CompareRow RowOf(const RunData& run, const std::string& metric_name,
                 int64_t warmup_steps) {
  CompareRow row;
  row.name = StrategyNameOf(run.job);
  row.workers = run.job.cluster().workers();
  row.servers = run.job.cluster().servers();
  row.folder = run.folder;
  row.status = run.status.empty() ? "not finished" : run.status;
  row.message = run.message;
  row.predicted_step_seconds = run.predicted_step_seconds;
  row.steps = static_cast<int64_t>(run.steps.size());
  double server_optimizer_seconds = 0;
  FillProcesses(run, &row, &server_optimizer_seconds);
  row.parts = MedianParts(run.steps, warmup_steps, server_optimizer_seconds);
  const std::vector<RunData::Step> steps = AfterWarmup(run.steps, warmup_steps);
  if (row.parts && row.parts->step > 0) {
    row.samples_per_second =
        MedianOf(steps, &RunData::Step::samples) / row.parts->step;
    row.drawn =
        TypicalStep(run, warmup_steps, row.parts->step, Gathers(run.job));
  }
  row.bytes_sent = MedianOf(steps, &RunData::Step::bytes_sent) / row.workers;
  row.bytes_received =
      MedianOf(steps, &RunData::Step::bytes_received) / row.workers;
  if (row.bytes_sent == 0 && row.bytes_received == 0) {
    CountNoCommunication(&row);
  }
  for (const RunData::Step& step : run.steps) {
    if (!step.loss) continue;
    row.loss = step.loss;
    if (std::isfinite(*step.loss)) {
      row.losses.push_back({step.step, *step.loss});
    }
  }
  if (const auto it = run.metrics.find(metric_name); it != run.metrics.end()) {
    row.metric = it->second;
  }
  return row;
}

// Index of the single process: a run with one worker, preferably without
// servers; runs.size() when there is none.
size_t FindSingle(const std::vector<RunData>& runs) {
  size_t found = runs.size();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].job.cluster().workers() != 1) continue;
    if (runs[i].job.cluster().servers() == 0) return i;
    if (found == runs.size()) found = i;
  }
  return found;
}

int64_t CountParameters(const std::string& weights_path) {
  const auto reader = SafetensorsReader::Open(weights_path);
  if (!reader.ok()) return 0;
  int64_t elements = 0;
  for (const ParameterSpec& spec : reader->tensors()) {
    elements += static_cast<int64_t>(spec.size());
  }
  return elements;
}

std::string WeightsOf(const RunData& run) {
  return run.folder + "/weights.safetensors";
}

}  // namespace

absl::StatusOr<CompareReport> MakeCompareReport(
    const std::vector<RunData>& runs) {
  if (runs.empty()) {
    return absl::InvalidArgumentError("there are no runs to compare");
  }
  CompareReport report;
  for (const RunData& run : runs) {
    if (std::string data = DataDifference(runs[0], run); !data.empty()) {
      report.notes.push_back(std::move(data));
    }
    const std::string difference = FirstDifference(runs[0], run);
    if (difference.empty()) continue;
    report.one_job = false;
    report.notes.push_back(absl::StrCat(
        runs[0].folder, " and ", run.folder, " differ in their settings (",
        difference, "), so their weights and steps are not compared"));
  }
  report.job_name = runs[0].job.name();
  report.global_batch = Essence(runs[0].job).data().global_batch_size();
  report.seed = runs[0].job.seed();
  const ComparedMetric metric = MetricOf(runs);
  report.metric_name = metric.name;
  report.metric_set = metric.set;
  if (!metric.difference.empty()) report.notes.push_back(metric.difference);
  report.version = kVersion;
  size_t most_steps = 0;
  for (const RunData& run : runs) {
    most_steps = std::max(most_steps, run.steps.size());
  }
  report.warmup_steps = WarmupSteps(static_cast<int64_t>(most_steps));

  const size_t single = report.one_job ? FindSingle(runs) : runs.size();
  for (size_t i = 0; i < runs.size(); ++i) {
    CompareRow row = RowOf(runs[i], report.metric_name, report.warmup_steps);
    if (!report.one_job) {
      row.name = NameWithFolder(runs[i]);
    } else if (i == single) {
      row.name = kSingle;
    } else if (single < runs.size() && runs[i].has_weights &&
               runs[single].has_weights) {
      TRIBUTARY_ASSIGN_OR_RETURN(
          row.weight_distance,
          RelativeWeightDistance(WeightsOf(runs[i]), WeightsOf(runs[single])));
    }
    if (runs[i].has_weights && report.parameters == 0) {
      report.parameters = CountParameters(WeightsOf(runs[i]));
    }
    report.rows.push_back(std::move(row));
  }
  if (single < runs.size()) {
    std::rotate(report.rows.begin(), report.rows.begin() + single,
                report.rows.begin() + single + 1);
  } else if (report.one_job) {
    report.notes.push_back(
        "there is no run of one worker to measure the others from");
  }
  return report;
}

}  // namespace tributary
