// SPDX-License-Identifier: Apache-2.0
// Job files and --set: a job that is taken can be written as a job file, and
// that file is the same job.
#include <google/protobuf/util/message_differencer.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/job/job_file.h"
#include "common/job/job_options.h"
#include "common/layers/model_parameters.h"
#include "tests/fuzz/fuzz.h"

namespace tributary::fuzz {

// A text, then overrides, each behind a NUL byte.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char kName[] = "/nowhere/job.yaml";
  const std::vector<std::string> parts =
      absl::StrSplit(Input(data, size).Rest(), '\0');
  const std::vector<std::string> overrides(parts.begin() + 1, parts.end());
  const absl::StatusOr<v1::JobSpec> job = ParseJob(parts[0], kName, overrides);
  if (!job.ok()) {
    Expect(absl::StartsWith(job.status().message(), kName) ||
               absl::StartsWith(job.status().message(), "--set "),
           "an error begins with its place");
    return 0;
  }
  const std::string yaml = JobToYaml(*job);
  const absl::StatusOr<v1::JobSpec> again = ParseJob(yaml, kName);
  if (!again.ok()) {
    std::fprintf(stderr, "%s\n%s\n", yaml.c_str(),
                 again.status().ToString().c_str());
  }
  Expect(again.ok(), "a resolved job can be read again");
  Expect(google::protobuf::util::MessageDifferencer::Equals(*job, *again),
         "reading back gives the same job");
  Expect(JobToYaml(*again) == yaml, "the same job is the same text");
  return 0;
}

}  // namespace tributary::fuzz
