// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/terminal/console.h"
#include "coordinator/job/job_news.h"
#include "coordinator/run/run_record.h"

namespace tributary {

// The screen of a person who follows a run: its steps, evaluations and notices,
// and at the end the result.
class RunScreen {
 public:
  // `job` must outlive this object. `start_step`: where the run begins.
  RunScreen(const v1::JobSpec* job, int64_t start_step, const Clock* clock,
            bool quiet)
      : job_(*job), start_step_(start_step), console_(clock, quiet) {}

  Console& console() { return console_; }

  // `samples`: the number that an earlier coordinator of this run has recorded.
  void Restore(uint64_t samples) { samples_ = samples; }
  // Shows each evaluation between the steps before and after it, followed by
  // the notices about what it has decided.
  void Show(const JobUpdate& update);
  // Shows the evaluations, and a line about the time that the run has taken.
  // `folder`: the run directory.
  void ShowResult(const RunSummary& summary, const std::string& folder);

 private:
  void ShowStep(const JobUpdate& update, const StepRecord& record);
  ProgressView PositionOf(const JobUpdate& update, int64_t step,
                          int64_t epoch) const;
  bool CountsSteps(uint64_t samples, int64_t steps) const;
  void NoteEvaluation(const RunSummary& summary, const char* set,
                      const std::string& folder);

  const v1::JobSpec& job_;
  const int64_t start_step_;
  Console console_;
  uint64_t samples_ = 0;  // of the steps up to last_step_
  int64_t last_step_ = 0;
  std::optional<double> loss_;  // the newest known one
};

}  // namespace tributary
