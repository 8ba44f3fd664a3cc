// SPDX-License-Identifier: Apache-2.0
#include "cli/run/resume.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/run/checkpoint_place.h"
#include "cli/terminal/console.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/host/small_file.h"
#include "common/job/goes_on.h"
#include "common/job/job_course.h"
#include "common/job/job_file.h"
#include "common/job/resolve.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_lock.h"

namespace tributary {
namespace {

// Replaces the checkpoint's job by the one of the run's job.yaml, which is
// resolved. Its files may be elsewhere by now.
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

}  // namespace

std::string ResumePoint::JobName() const {
  // RUN/checkpoints/step-N
  const std::string of_run =
      (std::filesystem::path(folder).parent_path() / ".." / "job.yaml")
          .lexically_normal()
          .string();
  return ReadText(of_run) == JobToYaml(job)
             ? of_run
             : absl::StrCat("the job of ", folder);
}

absl::StatusOr<ResumePoint> FindResumePoint(const std::string& path,
                                            const std::string& key) {
  ResumePoint point;
  std::vector<std::string> passed_over;
  TRIBUTARY_ASSIGN_OR_RETURN(point.folder, CheckpointAt(path, &passed_over));
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
  // The folder is RUN/checkpoints/step-N, not one in another directory.
  if (std::filesystem::path(point.folder).parent_path() ==
      std::filesystem::path(absl::StrCat(path, "/checkpoints"))) {
    TakeJobOfRun(absl::StrCat(path, "/job.yaml"), &point.job);
  }
  if (RunLock::IsHeld(path)) {
    PrintError(absl::StrCat(path, " still trains; this is a second run, from ",
                            "step ", point.start.step, " on"));
  }
  return point;
}

absl::Status CheckResumes(const v1::JobSpec& job, const ResumePoint& point) {
  const v1::CheckpointManifest& manifest = *point.start.manifest;
  return CheckGoesOn(job, {.job = manifest.job(),
                           .step = manifest.step(),
                           .has_state = manifest.state_names_size() > 0,
                           .course = CourseOf(manifest)});
}

}  // namespace tributary
