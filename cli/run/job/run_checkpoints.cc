// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/run_checkpoints.h"

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/terminal/format.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_status.h"
#include "common/job/job_difference.h"
#include "common/model_record/run_weights.h"
#include "common/status/shell_text.h"
#include "common/status/status_macros.h"
#include "coordinator/run/export_tensors.h"

namespace tributary {
namespace fs = std::filesystem;

namespace {

// Equals a job's EvaluationBasis only once in four billion jobs.
constexpr uint32_t kOtherBasis = 1;

// True if equal weights may be evaluated differently by the two models.
bool HasOtherModel(const v1::JobSpec& before, const v1::JobSpec& now) {
  return absl::c_any_of(
      JobDifferences(before, now), [](const JobDifference& difference) {
        return absl::StartsWith(difference.key, "model.") &&
               !absl::StartsWith(difference.key, "model.initialize") &&
               !absl::StrContains(difference.key, "dropout");
      });
}

bool HaveSameFiles(const CheckpointInfo& one, const CheckpointInfo& other) {
  return absl::c_equal(
      FilesOf(one.manifest), FilesOf(other.manifest),
      [](const v1::CheckpointFile& a, const v1::CheckpointFile& b) {
        return a.SerializeAsString() == b.SerializeAsString();
      });
}

}  // namespace

std::string ForgetLostBest(const v1::JobSpec& job, JobStart* start) {
  if (!start->manifest || start->manifest->evaluations().empty()) return "";
  auto manifest = std::make_shared<v1::CheckpointManifest>(*start->manifest);
  v1::EvaluationState& last =
      *manifest->mutable_evaluations(manifest->evaluations_size() - 1);
  v1::EvaluationsDecided& decided = *last.mutable_decided();
  if (HasOtherModel(manifest->job(), job)) {
    decided.set_basis(kOtherBasis);
    start->manifest = std::move(manifest);
    return "";
  }
  if (!job.evaluation().keep_best()) return "";
  const int64_t step = decided.best_step();
  const std::string folder =
      (fs::path(start->restore_from).parent_path() / CheckpointFolderName(step))
          .string();
  if (!decided.has_best_step() || step == start->step ||
      decided.metric() != job.evaluation().metric() ||
      ReadCheckpointInfo(folder).complete()) {
    return "";
  }
  const std::string lost = absl::StrFormat(
      "the best %s so far, %.4g after step %d, does not count, "
      "because %s is not there: ",
      decided.metric(), decided.best_value(), step, folder);
  decided.set_since_best(0);
  const auto value = last.metrics().find(decided.metric());
  if (last.step() == start->step && decided.newest_step() == last.step() &&
      value != last.metrics().end() && std::isfinite(value->second)) {
    decided.set_best_step(last.step());
    decided.set_best_value(value->second);
  } else {
    decided.clear_best_step();
    decided.set_best_value(0);
  }
  start->manifest = std::move(manifest);
  return absl::StrCat(lost, decided.has_best_step()
                                ? absl::StrCat("the weights of step ",
                                               start->step, " are the best now")
                                : "the best begins anew");
}

std::string RunCheckpoints::Directory(const std::string& run) const {
  const v1::CheckpointSpec& spec = job_.checkpoint();
  if (spec.every_steps() == 0 && !spec.at_end() &&
      !job_.evaluation().keep_best()) {
    return "";
  }
  return fs::absolute(spec.directory().empty() ? run + "/checkpoints"
                                               : spec.directory())
      .string();
}

absl::Status RunCheckpoints::Claim(const std::string& directory,
                                   uint64_t lineage, bool begins) {
  TRIBUTARY_ASSIGN_OR_RETURN(claim_, CheckpointClaim::Take(directory));
  return CheckLineage(directory, lineage, begins);
}

fs::path RunCheckpoints::Source(int64_t step) const {
  const fs::path start = start_.restore_from;
  return step == start_.step ? start
                             : start.parent_path() / CheckpointFolderName(step);
}

absl::Status RunCheckpoints::CheckNothingElse(const std::string& directory,
                                              int64_t best) const {
  if (directory.empty()) return absl::OkStatus();  // the job writes none
  for (const int64_t step : {best, start_.step}) {
    const CheckpointInfo there = ReadCheckpointInfo(
        absl::StrCat(directory, "/", CheckpointFolderName(step)));
    const std::string from = Source(step).string();
    const CheckpointInfo wanted = ReadCheckpointInfo(from);
    if (!there.complete() || !wanted.complete() ||
        HaveSameFiles(there, wanted)) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        there.path, " is not the checkpoint ", from,
        ", which this run needs in its place: give this run a folder of its "
        "own with --set checkpoint.directory=FOLDER"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             ListCheckpoints(directory));
  for (const CheckpointInfo& info : found) {
    if (info.step <= start_.step) break;
    if (!info.complete()) continue;
    const std::vector<FileReport> reports = VerifyCheckpoint(info.path, key_);
    if (absl::c_any_of(reports, [](const FileReport& file) {
          return !file.status.ok();
        })) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint.directory ", directory, " holds a checkpoint of step ",
        info.step, ", which a run from step ", start_.step,
        " on would replace: go on from that one with --resume ",
        ShellText({info.path}),
        ", or give this run a folder of its own with --set "
        "checkpoint.directory=FOLDER"));
  }
  return absl::OkStatus();
}

absl::Status RunCheckpoints::Resume(const std::string& directory,
                                    uint64_t lineage, int64_t best) {
  if (best > 0) TRIBUTARY_RETURN_IF_ERROR(Bring(best, directory));
  // A run that ends before its first checkpoint can be resumed as well, and the
  // weights that it starts with may be the best.
  const absl::Status brought = Bring(start_.step, directory);
  if (!brought.ok()) console_.Note(brought.message());
  TRIBUTARY_RETURN_IF_ERROR(
      RemoveCheckpointsAfter(directory, start_.step, lineage));
  return PruneCheckpoints(directory, job_.checkpoint().keep(),
                          {lineage, "", best});
}

absl::Status RunCheckpoints::Bring(int64_t step, const std::string& directory) {
  const std::string name = CheckpointFolderName(step);
  const fs::path from = Source(step), to = fs::path(directory) / name;
  std::error_code error;
  if (ReadCheckpointInfo(to.string()).complete()) {
    return absl::OkStatus();  // the same directory, or see CheckNothingElse
  }
  if (!ReadCheckpointInfo(from.string()).complete()) {
    console_.Note(absl::StrCat("the best weights so far, of step ", step,
                               ", are not at ", from.string()));
    return absl::OkStatus();
  }
  fs::remove_all(to, error);  // incomplete
  const fs::path part = fs::path(directory) / (name + ".part");
  fs::remove_all(part, error);
  fs::create_directories(directory, error);
  fs::copy(from, part, error);
  if (!error) {
    TRIBUTARY_RETURN_IF_ERROR(SyncFiles(part.string()));
    fs::rename(part, to, error);
  }
  if (!error) return SyncFolder(directory);
  std::error_code ignored;
  fs::remove_all(part, ignored);  // it may have taken the last of the disk
  return absl::UnavailableError(absl::StrCat(from.string(),
                                             ": cannot be copied to ",
                                             directory, ": ", error.message()));
}

RunCheckpoints::SavedBest RunCheckpoints::SaveBest(
    const JobTotals::Best& best, const std::string& run) const {
  if (best.step == 0) return {};
  const std::string what =
      absl::StrFormat("best: %s %s after step %d", best.metric,
                      FormatMetric(best.value), best.step);
  if (!job_.evaluation().keep_best()) return {.note = what};
  const std::string folder =
      absl::StrCat(Directory(run), "/", CheckpointFolderName(best.step));
  const std::string file = absl::StrCat(run, kBestWeightsFile);
  auto reader = CheckpointReader::Open(folder, key_);
  const absl::StatusOr<ExportedTensors> written =
      reader.ok() ? ExportTensors(*std::move(reader), false, file)
                  : reader.status();
  if (!written.ok()) {
    return {.note = absl::StrCat(what, "; its weights could not be written: ",
                                 written.status().message())};
  }
  return {.note = absl::StrCat(what, ": ", file, ", sha256 ",
                               written->weights_sha256),
          .weights_sha256 = written->weights_sha256};
}

}  // namespace tributary
