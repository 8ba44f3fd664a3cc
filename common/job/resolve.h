// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/status/place.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The steps from a text to a resolved job.
//
// Reads the text, then the overrides. Errors as ParseJob (job_file.h).
absl::Status ReadFields(absl::string_view text, const std::string& file_name,
                        const std::vector<std::string>& overrides,
                        Places* places, v1::JobSpec* job);

// Sets `program` in a job that has neither model nor data.
void MarkProgram(v1::JobSpec* job);

// How much of a job is known.
enum class JobPart {
  kWhole,
  kBase,    // of a program's job, whose program sets further fields later
  kRecord,  // a whole resolved job, whose files may be gone by now
};

// Resolves and checks the job. In a kBase only the written fields are checked,
// each on its own. The files of a kRecord are not looked at.
absl::Status ResolveJob(const std::string& file_name, JobPart part,
                        Places* places, v1::JobSpec* job);

// Sets the default of every field that was not written, and checks each field
// on its own: required fields are set, numbers are in range, one member of
// every oneof is chosen. A job without a name is named after `file_name`.
absl::Status ResolveFields(const std::string& file_name, JobPart part,
                           Places* places, v1::JobSpec* job);

// Returns the path of the field from which the field at `path` of a resolved
// job takes its value if the file leaves it out; empty: from no other field.
std::string SourceOf(const v1::JobSpec& job, absl::string_view path);

// Whether the field at `path` of a resolved job has its default, and this
// default depends on other fields.
bool HasDependentDefault(const v1::JobSpec& job, absl::string_view path);

// Replaces the model's preset, whose fields must be resolved, by its layers.
// The layers record the preset's place; their fields are not resolved yet.
absl::Status ExpandPreset(Places* places, v1::ModelSpec* model);

// Returns "; did you mean "digits.yaml"?" when the folder of `file` has a file
// with a similar name, otherwise nothing.
std::string FileHint(const std::string& file);

// Makes the job's paths absolute, relative to the directory of `file_name`, and
// checks that the files can be read.
absl::Status ResolvePaths(const std::string& file_name, const Places& places,
                          v1::JobSpec* job);

}  // namespace tributary
