#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// A job as it will run: every field has its value, every path is absolute, and
// the parts fit each other. Two things wait for the data: whether its width
// fits the first layer, and the end of a schedule that lasts as long as a job
// counted in epochs.

// Reads the YAML file and then applies `overrides`, each "key=value" as given
// to --set. Paths, also those of overrides, are relative to the job file.
// Every error is one sentence that begins with the place:
//   job.yaml:12: unknown field "optimiser" in training; did you mean
//   "optimizer"?
// NotFound when there is no such file, InvalidArgument for all else.
absl::StatusOr<v1::JobSpec> ReadJobFile(
    const std::string& path, const std::vector<std::string>& overrides = {});

// The same for a text that is already in memory; `file_name` stands in the
// errors and its folder is where relative paths start.
absl::StatusOr<v1::JobSpec> ParseJob(
    absl::string_view text, const std::string& file_name,
    const std::vector<std::string>& overrides = {});

// The job as a job file; reading it back gives the same job.
std::string JobToYaml(const v1::JobSpec& job);

}  // namespace tributary
