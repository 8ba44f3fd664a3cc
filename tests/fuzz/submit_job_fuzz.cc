// SPDX-License-Identifier: Apache-2.0
// The fields that a program sets of its job. A job that is accepted is
// complete, and its job file reads back as the same job.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/job/job_file.h"
#include "common/job/program/program_job.h"
#include "tests/fuzz/fuzz.h"

namespace tributary::fuzz {

// A letter, 'r' for the job of an earlier run, and the text of a job file; then
// the program's settings, each behind a NUL byte.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char kName[] = "/nowhere/job.yaml";
  const std::vector<std::string> parts =
      absl::StrSplit(Input(data, size).Rest(), '\0');
  ProgramJobSource source;
  source.text_yields = absl::StartsWith(parts[0], "r");
  source.text = parts[0].substr(std::min<size_t>(1, parts[0].size()));
  source.file_name = kName;
  const std::vector<std::string> settings(parts.begin() + 1, parts.end());
  const absl::StatusOr<v1::JobSpec> job = ParseProgramJob(source, settings);
  if (!job.ok()) {
    Expect(absl::StartsWith(job.status().message(), kName) ||
               absl::StartsWith(job.status().message(), "the program's "),
           "an error begins with its place");
    return 0;
  }
  Expect(job->has_program() && !job->has_model() && !job->has_data(),
         "the program has model and data");
  const std::string yaml = JobToYaml(*job);
  const absl::StatusOr<v1::JobSpec> again = ParseJob(yaml, kName);
  if (!again.ok()) {
    std::fprintf(stderr, "%s\n%s\n", yaml.c_str(),
                 again.status().ToString().c_str());
  }
  Expect(again.ok(), "a resolved job can be read again");
  Expect(google::protobuf::util::MessageDifferencer::Equals(*job, *again),
         "reading back gives the same job");
  // The same settings once more contradict nothing.
  source.text = yaml;
  source.text_yields = false;
  const absl::StatusOr<v1::JobSpec> same = ParseProgramJob(source, settings);
  Expect(same.ok(), "a job agrees with the settings that made it");
  Expect(google::protobuf::util::MessageDifferencer::Equals(*job, *same),
         "settings that are there change nothing");
  return 0;
}

}  // namespace tributary::fuzz
