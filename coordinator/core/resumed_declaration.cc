// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/resumed_declaration.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/job/learning_rate_schedule.h"
#include "common/job/optimizer_spec.h"
#include "common/job/sources/source_kind.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Rows of a whole step.
int64_t RowsAStep(const DataStretch& stretch) {
  int64_t rows = 0;
  const bool too_many =
      __builtin_mul_overflow(stretch.global_batch, stretch.accumulation, &rows);
  return too_many ? stretch.rows : std::min(rows, stretch.rows);
}

bool LacksCourse(const v1::JobSpec& job,
                 const v1::CheckpointManifest& manifest) {
  return job.has_program() && manifest.step() > 0 &&
         manifest.course_size() == 0 &&
         manifest.workers_size() != job.cluster().workers();
}

// A smaller relative change of a rate is rounding and gets no notice.
constexpr double kSameRate = 1e-6;

// The length that the schedule itself states; 0: none.
int64_t NamedLength(const v1::ScheduleSpec& schedule) {
  if (schedule.has_cosine()) return schedule.cosine().t_max();
  if (schedule.has_warmup_cosine()) return schedule.warmup_cosine().total();
  return schedule.warmup_linear().total();
}

std::optional<LearningRateSchedule> ScheduleOf(const v1::JobSpec& job,
                                               int64_t total_steps) {
  if (total_steps < 1 || total_steps == kOpenEnd) return std::nullopt;
  auto schedule = LearningRateScheduleOf(job, total_steps);
  if (!schedule.ok()) return std::nullopt;
  return *std::move(schedule);
}

}  // namespace

absl::Status CheckCourse(const v1::DeclareModelRequest& request,
                         const v1::JobSpec& job,
                         const v1::CheckpointManifest* manifest) {
  if (request.course_size() == 0) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(CourseFromProto(request.course()).status());
  if (manifest == nullptr || !LacksCourse(job, *manifest)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint does not record which rows its ",
                   manifest->workers_size(), " ranks have taken, so ",
                   job.cluster().workers(),
                   " ranks cannot continue from it; continue with --workers ",
                   manifest->workers_size()));
}

std::string CourseDifference(const SavedCourse& first,
                             const SavedCourse& other) {
  const int both = std::min(first.size(), other.size());
  for (int i = 0; i < both; ++i) {
    if (first[i].SerializeAsString() == other[i].SerializeAsString()) continue;
    const auto text = [](const v1::DataStretch& s) {
      return absl::StrCat(s.accumulation(),
                          s.accumulation() == 1 ? " batch" : " batches", " of ",
                          s.global_batch(), " rows in each step, out of ",
                          s.rows(), " rows (", s.order().substr(0, 200),
                          "), from step ", s.step(), " on");
    };
    return absl::StrCat(text(other[i]), " instead of ", text(first[i]));
  }
  return "";
}

std::string BatchChange(const DataCourse& course, int64_t start_step,
                        int64_t total_steps) {
  const std::vector<DataStretch>& stretches = course.stretches();
  if (stretches.size() < 2 || course.last().step != start_step) return "";
  const DataStretch& before = stretches[stretches.size() - 2];
  const DataStretch& now = course.last();
  if (RowsAStep(before) == RowsAStep(now) &&
      before.steps_per_epoch() == now.steps_per_epoch()) {
    return "";
  }
  std::vector<std::string> changes;
  if (RowsAStep(before) != RowsAStep(now)) {
    changes.push_back(absl::StrCat("a step takes ", RowsAStep(now),
                                   " rows instead of ", RowsAStep(before)));
  }
  if (before.steps_per_epoch() != now.steps_per_epoch()) {
    changes.push_back(absl::StrCat("an epoch has ", now.steps_per_epoch(),
                                   " steps instead of ",
                                   before.steps_per_epoch()));
  }
  return absl::StrCat(
      "from step ", start_step + 1, " on, ",
      now.begin.row > 0 ? absl::StrCat("after ", now.begin.row, " rows of ")
                        : "at the beginning of ",
      "epoch ", now.begin.epoch + 1, ", ", absl::StrJoin(changes, ", and "),
      KnownSteps(total_steps) > 0
          ? absl::StrCat("; the job ends after step ", total_steps)
          : "");
}

std::string ValidationChange(const v1::JobSpec& job, bool other_rows,
                             const v1::CheckpointManifest& manifest) {
  const v1::DataSpec& now = job.data();
  const v1::DataSpec& before = manifest.job().data();
  // The fraction of a text is its last samples, however the others are ordered.
  const bool same_order =
      SequenceLengthOf(now.train()) > 0 ||
      before.shuffle().SerializeAsString() == now.shuffle().SerializeAsString();
  const bool same_rows =
      manifest.data_checksum() != 0 ||  // the checksum decides
      before.train().SerializeAsString() == now.train().SerializeAsString();
  const bool keeps_away =
      before.validation().has_fraction() && same_order && same_rows &&
      before.validation().fraction() == now.validation().fraction();
  if (!now.validation().has_fraction() || (keeps_away && !other_rows)) {
    return "";
  }
  return "the validation rows are not those that the job before kept away from "
         "training: the checkpoint may have been trained on some of them, and "
         "results on these look better than they are";
}

std::string RateChange(const v1::JobSpec& job, int64_t total_steps,
                       const v1::CheckpointManifest& manifest) {
  const int64_t step = manifest.step();
  const auto before = ScheduleOf(manifest.job(), manifest.total_steps());
  const auto now = ScheduleOf(job, total_steps);
  if (!before || !now || step < 1 || total_steps <= step) return "";
  const double was_due = before->At(step), rate = now->At(step);
  if (std::abs(rate - was_due) <=
      kSameRate * std::max(std::abs(rate), std::abs(was_due))) {
    const int64_t length = NamedLength(job.training().learning_rate_schedule());
    if (length == 0 || length >= total_steps ||
        total_steps <= manifest.total_steps()) {
      return "";
    }
    return absl::StrCat("the learning rate stays at ", now->At(length),
                        " after step ", length, ", where its schedule ends; ",
                        "the job now has ", total_steps, " steps and had ",
                        manifest.total_steps());
  }
  return absl::StrCat(
      "the learning rate goes from ", before->At(step - 1), " in step ", step,
      " to ", rate, " in step ", step + 1,
      manifest.total_steps() == total_steps
          ? ", as the job says it now"
          : absl::StrCat("; the job now has ", total_steps, " steps and had ",
                         manifest.total_steps()));
}

std::string RanksChange(const v1::JobSpec& job,
                        const v1::CheckpointManifest& manifest) {
  if (!LacksCourse(job, manifest)) return "";
  return absl::StrCat(
      "the checkpoint does not record which rows its ", manifest.workers_size(),
      " ranks have taken; with ", job.cluster().workers(),
      " ranks the program must find its own position in the data");
}

}  // namespace tributary
