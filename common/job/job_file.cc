// SPDX-License-Identifier: Apache-2.0
#include "common/job/job_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/host/small_file.h"
#include "common/job/resolve.h"
#include "common/job/validate/validate.h"
#include "common/job/yaml/override.h"
#include "common/job/yaml/proto_reader.h"
#include "common/job/yaml/yaml_tree.h"
#include "common/status/place.h"
#include "common/status/status_macros.h"

namespace tributary {

// Stops reading once the file exceeds the size limit of job files.
absl::StatusOr<std::string> ReadJobText(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) {
      return absl::NotFoundError(
          absl::StrCat(path, ": no such job file", FileHint(path)));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot be read: ", strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": wants a job file, got a folder"));
  }
  return ReadSmallFile(path, kMaxYamlBytes);
}

namespace {

absl::StatusOr<PlacedJob> ParsePlacedJob(
    absl::string_view text, const std::string& file_name,
    const std::vector<std::string>& overrides, JobPart part = JobPart::kWhole,
    const std::string& folder = "") {
  PlacedJob placed;
  v1::JobSpec& job = placed.job;
  Places& places = placed.places;
  places.Record("", file_name);
  TRIBUTARY_RETURN_IF_ERROR(
      ReadFields(text, file_name, overrides, &places, &job));
  MarkProgram(&job);
  if (job.has_program() && !job.training().has_optimizer()) {
    return places.Error("",
                        "model and data are missing; or training.optimizer, "
                        "if `tributary run` starts a program for this job");
  }
  const std::filesystem::path file = file_name;
  TRIBUTARY_RETURN_IF_ERROR(ResolveJob(
      folder.empty() ? file : folder / file.filename(), part, &places, &job));
  return placed;
}

}  // namespace

absl::StatusOr<PlacedJob> ReadPlacedJob(
    const std::string& path, const std::vector<std::string>& overrides) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text, ReadJobText(path));
  return ParsePlacedJob(text, path, overrides);
}

absl::StatusOr<v1::JobSpec> ReadJobFile(
    const std::string& path, const std::vector<std::string>& overrides) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text, ReadJobText(path));
  return ParseJob(text, path, overrides);
}

absl::StatusOr<v1::JobSpec> ReadRecordedJob(const std::string& run) {
  const std::string path = absl::StrCat(run, "/job.yaml");
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text, ReadJobText(path));
  TRIBUTARY_ASSIGN_OR_RETURN(PlacedJob placed,
                             ParsePlacedJob(text, path, {}, JobPart::kRecord));
  return std::move(placed.job);
}

absl::StatusOr<v1::JobSpec> ParseJob(absl::string_view text,
                                     const std::string& file_name,
                                     const std::vector<std::string>& overrides,
                                     const std::string& folder) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      PlacedJob placed,
      ParsePlacedJob(text, file_name, overrides, JobPart::kWhole, folder));
  return std::move(placed.job);
}

absl::Status ReadFields(absl::string_view text, const std::string& file_name,
                        const std::vector<std::string>& overrides,
                        Places* places, v1::JobSpec* job) {
  const YamlSource source{.name = file_name};
  TRIBUTARY_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, source));
  TRIBUTARY_RETURN_IF_ERROR(
      ProtoReader(source, places).ReadMessage(root, "", job));
  for (const std::string& override_text : overrides) {
    TRIBUTARY_RETURN_IF_ERROR(
        ApplyOverride(kOverrideOrigin, override_text, places, job));
  }
  return absl::OkStatus();
}

absl::Status ResolveJob(const std::string& file_name, JobPart part,
                        Places* places, v1::JobSpec* job) {
  if (job->has_program()) {
    TRIBUTARY_RETURN_IF_ERROR(ValidateProgram(*places, *job));
  }
  TRIBUTARY_RETURN_IF_ERROR(ResolveFields(file_name, part, places, job));
  if (part != JobPart::kBase) {
    TRIBUTARY_RETURN_IF_ERROR(ValidateJob(*places, *job));
  }
  if (part == JobPart::kRecord) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(ResolvePaths(file_name, *places, job));
  return ValidateInitialWeights(*places, *job);
}

absl::StatusOr<v1::JobSpec> ReadModelJob(
    const std::string& path, const std::vector<std::string>& overrides) {
  TRIBUTARY_ASSIGN_OR_RETURN(v1::JobSpec job, ReadJobFile(path, overrides));
  TRIBUTARY_RETURN_IF_ERROR(CheckHasModel(job, path));
  return job;
}

absl::Status CheckHasModel(const v1::JobSpec& job, absl::string_view place) {
  if (!job.has_program()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(place,
                   ": a job without model and data is for a program of your "
                   "own; start it with `tributary run`"));
}

}  // namespace tributary
