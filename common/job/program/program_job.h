// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The part of a program's job that is known before the program runs.
struct ProgramJobSource {
  std::string text;       // of the job file; empty: there is none
  std::string file_name;  // empty: there is none; paths start here (job_file.h)
  std::string name;       // of the job, if neither text nor file gives one
  std::vector<std::string> overrides;  // as given to --set
  // True if the text is the job of an earlier run: the program may then change
  // its fields.
  bool text_yields = false;
};

// The source with the text of this job file. Errors as ReadJobFile
// (job_file.h).
absl::StatusOr<ProgramJobSource> ReadProgramJob(
    const std::string& path, std::vector<std::string> overrides);

// Whether the source describes a program's job, which has no model and no data.
// Errors as ReadJobFile.
absl::StatusOr<bool> IsForProgram(const ProgramJobSource& source);

// Resolves the source without the fields that the program sets later: required
// fields may be missing. InvalidArgument: a field by itself is wrong, or the
// job has a model or data.
absl::StatusOr<v1::JobSpec> ParseProgramBase(const ProgramJobSource& source);

// Returns the whole job: the source with `settings`, the program's fields
// (SubmitJobRequest). Errors as ReadJobFile; also InvalidArgument when a
// setting contradicts an override, or the text unless `text_yields`: the
// message names the field and both values. An error in a setting names it
// first.
absl::StatusOr<v1::JobSpec> ParseProgramJob(
    const ProgramJobSource& source, const std::vector<std::string>& settings);

}  // namespace tributary
