// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A job as it will run: every field has its value, every path is absolute, and
// the parts fit together. Two things depend on the data and are left open:
// whether its width fits the first layer, and the length of a schedule of a job
// that counts in epochs.

// A job without `model` and `data` is for a program: its `program` is set.
//
// Reads the YAML file, then applies `overrides`, each "key=value" as given to
// --set. All paths, also those in overrides, are relative to the job file.
// Every error is one sentence that starts with the place:
//   job.yaml:12: unknown field "optimiser" in training; did you mean
//   "optimizer"?
// NotFound when there is no such file, InvalidArgument for all other errors.
absl::StatusOr<v1::JobSpec> ReadJobFile(
    const std::string& path, const std::vector<std::string>& overrides = {});

// A job and where each of its values was written.
struct PlacedJob {
  v1::JobSpec job;
  Places places;
};

// The same as ReadJobFile, with the places, for errors that are found later.
absl::StatusOr<PlacedJob> ReadPlacedJob(
    const std::string& path, const std::vector<std::string>& overrides);

// The same for text in memory. Errors contain `file_name`. Relative paths start
// from `folder`; empty: from the directory of `file_name`.
absl::StatusOr<v1::JobSpec> ParseJob(
    absl::string_view text, const std::string& file_name,
    const std::vector<std::string>& overrides = {},
    const std::string& folder = "");

// Reads the job of a run directory. Does not look at the job's files: they may
// be gone, and a command checks only those that it reads. Errors as
// ReadJobFile.
absl::StatusOr<v1::JobSpec> ReadRecordedJob(const std::string& run);

// InvalidArgument when the job is for a program, which only `tributary run`
// starts. `place` begins the message.
absl::Status CheckHasModel(const v1::JobSpec& job, absl::string_view place);

// ReadJobFile and CheckHasModel, for a command that needs the model.
absl::StatusOr<v1::JobSpec> ReadModelJob(
    const std::string& path, const std::vector<std::string>& overrides);

// The text of a job file. Errors as ReadJobFile.
absl::StatusOr<std::string> ReadJobText(const std::string& path);

// Returns the text of a job file that gives the same job when it is read.
std::string JobToYaml(const v1::JobSpec& job);

}  // namespace tributary
