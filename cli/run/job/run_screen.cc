// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/run_screen.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/terminal/format.h"
#include "common/status/shell_text.h"

namespace tributary {

void RunScreen::Show(const JobUpdate& update) {
  for (const StepRecord& record : update.steps) {
    samples_ += record.samples;
    last_step_ = record.step;
  }
  if (update.phase == v1::JOB_PHASE_WAITING) console_.Wait(update.message);
  const auto& steps = update.steps;
  auto shown = steps.begin();
  const auto show_until = [&](auto end) {
    if (shown != end) ShowStep(update, *std::prev(end));
    shown = end;
  };
  for (const EvaluationRecord& evaluation : update.evaluations) {
    show_until(std::find_if(shown, steps.end(), [&](const StepRecord& record) {
      return record.step > evaluation.step;
    }));
    const bool ends_epoch =
        !update.course.empty() && update.course.EndsEpoch(evaluation.step);
    console_.Note(EvaluationLine(
        PositionOf(update, evaluation.step, ends_epoch ? evaluation.epoch : 0),
        evaluation.set, evaluation.metrics));
  }
  show_until(steps.end());
  for (const std::string& notice : update.notices) console_.Note(notice);
}

ProgressView RunScreen::PositionOf(const JobUpdate& update, int64_t step,
                                   int64_t epoch) const {
  ProgressView view;
  view.step = step;
  view.total_steps = update.total_steps;
  // A program without epochs counts each step as an epoch.
  view.epoch = job_.has_program() && epoch == step ? 0 : epoch;
  view.epochs =
      update.course.empty() ? 0 : update.course.EpochOf(update.total_steps);
  return view;
}

// True if the program does not count its samples. Every rank then reports one
// sample a step, so the screen counts steps.
bool RunScreen::CountsSteps(uint64_t samples, int64_t steps) const {
  return job_.has_program() &&
         samples <= static_cast<uint64_t>(steps) * job_.cluster().workers();
}

void RunScreen::ShowStep(const JobUpdate& update, const StepRecord& record) {
  ProgressView view = PositionOf(update, record.step, record.epoch);
  if (record.loss && record.samples > 0) loss_ = record.loss;
  view.loss = loss_;
  view.samples_per_second = record.samples_per_second;
  const double samples_a_step = static_cast<double>(samples_) /
                                static_cast<double>(last_step_ - start_step_);
  view.eta_seconds = static_cast<double>(view.total_steps - view.step) *
                     samples_a_step / view.samples_per_second;
  if (CountsSteps(record.samples, 1) && record.samples > 0) {
    view.counts_steps = true;
    view.samples_per_second /= static_cast<double>(record.samples);
  }
  console_.Show(view);
}

// If the run leaves its best weights, notes the evaluation of these weights on
// this set, if there is one.
void RunScreen::NoteEvaluation(const RunSummary& summary, const char* set,
                               const std::string& folder) {
  const int64_t best =
      summary.best_weights_sha256.empty() ? 0 : summary.totals.best.step;
  const EvaluationRecord* record = best > 0 ? summary.At(set, best) : nullptr;
  const bool of_best = record != nullptr;
  if (!of_best) record = summary.LastOn(set);
  if (record == nullptr) return;
  std::string text = absl::StrCat(set, ": ", MetricsText(record->metrics));
  if (best > 0) {
    absl::StrAppend(&text, " (", of_best ? "best" : "weights",
                    ".safetensors, step ", record->step);
    if (!of_best) {
      absl::StrAppend(&text, "; `",
                      ShellText({"tributary", "evaluate", folder}),
                      "` says those of best.safetensors");
    }
    text += ")";
  }
  console_.Note(text);
}

void RunScreen::ShowResult(const RunSummary& summary,
                           const std::string& folder) {
  for (const char* set : {"validation", "test"}) {
    NoteEvaluation(summary, set, folder);
  }
  const std::string all =
      summary.total_steps > 0 ? absl::StrCat(" of ", summary.total_steps) : "";
  const bool counts_steps = CountsSteps(
      summary.totals.samples, summary.totals.steps - summary.totals.start_step);
  console_.Note(
      absl::StrFormat("%s: %d%s steps in %s, %s", summary.status,
                      summary.totals.steps, all, FormatElapsed(summary.seconds),
                      RateText(counts_steps ? summary.StepsPerSecond()
                                            : summary.SamplesPerSecond(),
                               counts_steps)));
  console_.Note(absl::StrCat("weights: ", folder,
                             "/weights.safetensors, sha256 ",
                             summary.weights_sha256));
}

}  // namespace tributary
