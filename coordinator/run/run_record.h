// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/core/evaluation/evaluations.h"
#include "coordinator/core/event_history.h"
#include "coordinator/core/progress.h"
#include "coordinator/job/job_status.h"

namespace tributary {

// The outcome of a run, for summary.json and the last lines on the screen.
struct RunSummary {
  std::string name;
  std::string status;                       // "done", "interrupted" or "failed"
  std::string message;                      // why a run failed
  v1::Cause cause = v1::CAUSE_UNSPECIFIED;  // the same for programs
  std::string started;                      // UTC, ISO 8601
  double seconds = 0;  // from the command's start to its end
  JobTotals totals;
  int64_t total_steps = 0;  // of the whole job; 0: not known
  std::vector<EvaluationRecord> evaluations;
  std::vector<v1::MemberStatus> members;
  uint64_t coordinator_peak_memory_bytes = 0;
  std::string weights_sha256;       // empty: no weights were saved
  std::string best_weights_sha256;  // of best.safetensors; empty: none
  // The command that continues a run that did not end by itself; empty: none.
  std::string resume_command;
  std::string run_directory;  // absolute; with resume_command alone

  // The last evaluation on "test" or "validation"; null: there is none.
  const EvaluationRecord* LastOn(absl::string_view set) const;
  // The evaluation on this set after this step; null: there is none.
  const EvaluationRecord* At(absl::string_view set, int64_t step) const;
  double SamplesPerSecond() const;  // during training alone
  double StepsPerSecond() const;
};

// MetricsLine returns a line of metrics.jsonl, without its end
// (docs/run-directory.md). ReadMetricsLine returns the step that a line
// describes, without bytes_sent; nullopt: it is not such a line.
std::string MetricsLine(const StepRecord& record);
std::optional<StepRecord> ReadMetricsLine(absl::string_view line);

// The same for evaluations.jsonl. A metric that is not finite is null in the
// line and is read as NaN.
std::string EvaluationText(const EvaluationRecord& evaluation);
std::optional<EvaluationRecord> ReadEvaluationText(absl::string_view line);

// The same for events.jsonl.
std::string EventLine(const HistoryEvent& event);
std::optional<HistoryEvent> ReadEventLine(absl::string_view line);

// Returns a line of timeline.jsonl, without its end: what every rank did, and
// when, in a step that the page draws. record.ranks must not be empty.
std::string TimelineLine(const StepRecord& record);

// Returns the contents of summary.json.
std::string SummaryJson(const RunSummary& summary);

}  // namespace tributary
