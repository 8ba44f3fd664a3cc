// SPDX-License-Identifier: Apache-2.0
#include "cli/run/checkpoint_place.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/jobs/run_outcome.h"
#include "cli/terminal/console.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/restore.h"
#include "common/files/file_status.h"
#include "common/host/small_file.h"
#include "common/job/yaml/yaml_tree.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_directory.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

const YamlNode* ValueOf(const YamlNode& map, absl::string_view key) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text == key) return &map.items[i];
  }
  return nullptr;
}

// Recognizes an incomplete checkpoint, which has no manifest, by its name.
bool IsCheckpointFolder(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::path(path).lexically_normal();
  const fs::path name = folder.has_filename() ? folder.filename()
                                              : folder.parent_path().filename();
  return fs::exists(ManifestPath(path), error) ||
         absl::StartsWith(name.string(), "step-");
}

// checkpoint.directory in the job.yaml of a run, which is absolute there;
// empty: the run's checkpoints are in the run directory.
std::string DirectoryOfRun(const std::string& run) {
  const absl::StatusOr<std::string> text =
      ReadSmallFile(absl::StrCat(run, "/job.yaml"), kMaxYamlBytes);
  if (!text.ok()) return "";
  const auto job = ParseYaml(*text, {.name = "job.yaml"});
  if (!job.ok()) return "";
  const YamlNode* const checkpoint = ValueOf(*job, "checkpoint");
  const YamlNode* const directory =
      checkpoint ? ValueOf(*checkpoint, "directory") : nullptr;
  return directory ? directory->text : "";
}

void TellOfLaterRun(const std::string& run, const CheckpointPlace& place,
                    const CheckpointInfo& info) {
  if (IsOfRun(run, place, info)) return;
  const absl::StatusOr<RunOutcome> outcome = ReadRunOutcome(run);
  PrintError(absl::StrCat(
      run,
      outcome.ok() ? absl::StrCat(" ended after step ", outcome->steps)
                   : " has not come to its end",
      "; ", info.path, ", the newest checkpoint in ", place.path,
      ", is of a run that went on from it"));
}

}  // namespace

absl::StatusOr<CheckpointPlace> FindCheckpoints(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (fs::exists(path, error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, " is a file; name a run directory or a checkpoint's folder"));
    }
    return FileError(path, "open", error ? error.value() : ENOENT);
  }
  if (IsCheckpointFolder(path)) return CheckpointPlace{path, false};
  const std::string of_run = absl::StrCat(path, "/checkpoints");
  if (fs::is_directory(of_run, error)) return CheckpointPlace{of_run, true};
  const std::string elsewhere = DirectoryOfRun(path);
  return CheckpointPlace{elsewhere.empty() ? path : elsewhere, true};
}

bool IsOfRun(const std::string& run, const CheckpointPlace& place,
             const CheckpointInfo& info) {
  if (place.path == absl::StrCat(run, "/checkpoints")) return true;
  const absl::StatusOr<RunOutcome> outcome = ReadRunOutcome(run);
  if (outcome.ok()) return info.step <= outcome->steps;
  // Without a summary, the run was killed or still trains.
  const auto state = RunDirectory::ReadState(run);
  return !state.ok() || info.manifest.job_id() == state->job_id() ||
         info.step <= state->plan().start_step();
}

absl::StatusOr<std::vector<CheckpointInfo>> CheckpointsAt(
    const CheckpointPlace& place) {
  if (place.is_directory) return ListCheckpoints(place.path);
  return std::vector<CheckpointInfo>{ReadCheckpointInfo(place.path)};
}

absl::StatusOr<std::string> CheckpointAt(
    const std::string& path, std::vector<std::string>* passed_over) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointPlace place,
                             FindCheckpoints(path));
  if (!place.is_directory) return place.path;
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             ListCheckpoints(place.path));
  for (const CheckpointInfo& info : found) {
    if (info.complete()) {
      TellOfLaterRun(path, place, info);
      return info.path;
    }
    if (HasManifest(info)) return NameOlder(info.status, info.path);
    if (passed_over != nullptr) passed_over->push_back(info.path);
  }
  return NewestCheckpoint(place.path).status();
}

absl::StatusOr<std::string> NewestWholeAt(
    const std::string& path, const std::string& key,
    std::vector<std::string>* passed_over) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointPlace place,
                             FindCheckpoints(path));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             CheckpointsAt(place));
  for (const CheckpointInfo& info : found) {
    const std::vector<FileReport> reports = VerifyCheckpoint(info.path, key);
    const auto damaged = absl::c_find_if(
        reports, [](const FileReport& file) { return !file.status.ok(); });
    if (damaged == reports.end()) {
      TellOfLaterRun(path, place, info);
      return info.path;
    }
    passed_over->push_back(absl::StrCat(
        info.path,
        " is passed over: ", absl::string_view(damaged->status.message())));
  }
  return absl::NotFoundError(
      absl::StrCat(place.path, ": holds no intact checkpoint"));
}

absl::Status NameOlder(const absl::Status& damage, const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a trailing "/"
  const std::string directory =
      path.has_parent_path() ? path.parent_path().string() : ".";
  const CheckpointInfo info = ReadCheckpointInfo(folder);
  const auto older =
      OlderWholeCheckpoint(directory, info.lineage, 0, info.step);
  return absl::Status(
      damage.code(),
      absl::StrCat(damage.message(), "; ",
                   older.ok()
                       ? absl::StrCat("the newest intact checkpoint "
                                      "before it is ",
                                      older->path, ": name it to take that one")
                       : "no checkpoint before it is intact"));
}

}  // namespace tributary
