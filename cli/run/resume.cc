// SPDX-License-Identifier: Apache-2.0
#include "cli/run/resume.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/jobs/run_outcome.h"
#include "cli/run/checkpoint_place.h"
#include "cli/terminal/console.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/planned_checkpoint.h"
#include "common/host/small_file.h"
#include "common/job/goes_on.h"
#include "common/job/job_course.h"
#include "common/job/job_difference.h"
#include "common/job/job_file.h"
#include "common/job/resolve.h"
#include "common/job/validate/validate.h"
#include "common/layers/model_parameters.h"
#include "common/plan/plan_codec.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_lock.h"

namespace tributary {
namespace {

// Replaces the checkpoint's job by the resolved job in the run's job.yaml. The
// files that this job names may be elsewhere by now.
void TakeJobOfRun(const std::string& file, v1::JobSpec* job) {
  v1::JobSpec found;
  Places places;
  const absl::StatusOr<std::string> text = ReadJobText(file);
  const absl::Status read =
      text.ok() ? ReadFields(*text, file, {}, &places, &found) : text.status();
  if (!read.ok()) {
    return PrintError(absl::StrCat(read.message(),
                                   "; going on with the job of the "
                                   "checkpoint"));
  }
  MarkProgram(&found);
  if (JobToYaml(found) == JobToYaml(*job)) return;
  PrintError(absl::StrCat(file,
                          " differs from the job of the checkpoint, and "
                          "counts"));
  *job = std::move(found);
}

// "training.optimizer.adam.learning_rate: 0.01 -> 0.3; ...": the settings that
// change the steps from here on. Leaves out the length of the job, which only
// changes the number of steps, and data files, whose samples are compared
// later.
std::string ChangesText(const v1::JobSpec& before, const v1::JobSpec& now) {
  constexpr size_t kMostShown = 6;
  const auto text = [](const std::string& value) {
    return value.empty() ? "none" : value.substr(0, 40);
  };
  std::vector<std::string> changes;
  for (const JobDifference& difference : JobDifferences(before, now)) {
    if (!difference.matters || difference.names_data ||
        difference.key == "training.epochs" ||
        difference.key == "training.steps") {
      continue;
    }
    changes.push_back(absl::StrCat(difference.key, ": ", text(difference.a),
                                   " -> ", text(difference.b)));
  }
  const size_t all = changes.size();
  if (all > kMostShown) {
    changes.resize(kMostShown);
    changes.push_back(absl::StrCat("and ", all - kMostShown, " more"));
  }
  return absl::StrJoin(changes, "; ");
}

}  // namespace

std::string ResumePoint::JobName() const {
  return ReadText(job_file) == JobToYaml(job)
             ? job_file
             : absl::StrCat("the job of ",
                            std::filesystem::path(folder).filename().string());
}

absl::StatusOr<ResumePoint> FindResumePoint(const std::string& path,
                                            const std::string& key,
                                            const std::string& run_dir) {
  ResumePoint point;
  std::vector<std::string> passed_over;
  TRIBUTARY_ASSIGN_OR_RETURN(point.folder, CheckpointAt(path, &passed_over));
  if (std::error_code error;
      std::filesystem::equivalent(run_dir, path, error) ||
      std::filesystem::equivalent(run_dir, point.folder + "/../..", error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run directory ", run_dir,
        " is the run that is resumed; leave out --run-dir, or name a new "
        "folder for what the resumed run leaves behind"));
  }
  for (const std::string& newer : passed_over) {
    PrintError(absl::StrCat(newer, " has no manifest and is passed over; ",
                            "going on from ", point.folder));
  }
  for (const FileReport& file : VerifyCheckpoint(point.folder, key)) {
    if (!file.status.ok()) return NameOlder(file.status, point.folder);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest,
                             ReadManifest(point.folder, key));
  point.start.restore_from = std::filesystem::absolute(point.folder).string();
  point.start.step = manifest.step();
  point.start.lineage = LineageOf(manifest);
  point.start.data_checksum = manifest.data_checksum();
  point.start.manifest =
      std::make_shared<const v1::CheckpointManifest>(manifest);
  point.job = manifest.job();
  const std::filesystem::path directory =
      std::filesystem::path(point.folder).parent_path();
  const absl::StatusOr<CheckpointPlace> place = FindCheckpoints(path);
  const std::string of_run = absl::StrCat(path, "/job.yaml");
  if (!place.ok() || place->path != directory || directory == path) {
    // RUN/checkpoints/step-N
    point.job_file = (directory / ".." / "job.yaml").lexically_normal();
  } else if (IsOfRun(path, *place, ReadCheckpointInfo(point.folder))) {
    point.job_file = of_run;
    TakeJobOfRun(of_run, &point.job);
  } else if (ReadText(of_run) != JobToYaml(point.job)) {
    PrintError(absl::StrCat(of_run, " does not count, because ", point.folder,
                            " is of another run with another job"));
  }
  if (RunLock::IsHeld(path)) {
    PrintError(absl::StrCat(path, " still trains; this is a second run, from ",
                            "step ", point.start.step, " on"));
  }
  return point;
}

void LeaveOutInitialWeights(v1::JobSpec* job) {
  v1::ModelSpec* model = job->mutable_model();
  model->clear_initialize_from();
  model->clear_initialize_rules();
  model->clear_initialize_unused();
}

absl::StatusOr<v1::JobSpec> ResumedJob(
    const ResumePoint& point, const std::vector<std::string>& overrides) {
  if (ValidateInitialWeights(Places(), point.job).ok()) {
    return ParseJob(JobToYaml(point.job), point.JobName(), overrides, ".");
  }
  v1::JobSpec without = point.job;
  LeaveOutInitialWeights(&without);
  TRIBUTARY_ASSIGN_OR_RETURN(
      v1::JobSpec job,
      ParseJob(JobToYaml(without), point.JobName(), overrides, "."));
  if (!job.model().initialize_from().empty()) return job;
  // The run's record still says how the training began.
  const v1::ModelSpec& model = point.job.model();
  job.mutable_model()->set_initialize_from(model.initialize_from());
  *job.mutable_model()->mutable_initialize_rules() = model.initialize_rules();
  *job.mutable_model()->mutable_initialize_unused() = model.initialize_unused();
  return job;
}

absl::Status CheckResumes(const v1::JobSpec& job, const ResumePoint& point) {
  const v1::CheckpointManifest& manifest = *point.start.manifest;
  if (!job.has_program()) {
    const absl::Status holds = CheckHolds(FromProto(manifest.parameters()),
                                          ModelParameters(job.model()));
    if (!holds.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          point.folder, ": ", holds.message(),
          ": go on with the model of the checkpoint, or take the weights that "
          "fit, by tributary export and model.initialize_from"));
    }
  }
  TRIBUTARY_RETURN_IF_ERROR(
      CheckGoesOn(job, {.job = manifest.job(),
                        .step = manifest.step(),
                        .has_state = manifest.state_names_size() > 0,
                        .course = CourseOf(manifest),
                        .parameters = FromProto(manifest.parameters())}));
  if (const std::string changes = ChangesText(manifest.job(), job);
      !changes.empty()) {
    PrintError(absl::StrCat("changed since the checkpoint: ", changes));
  }
  return absl::OkStatus();
}

}  // namespace tributary
