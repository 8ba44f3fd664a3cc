// SPDX-License-Identifier: Apache-2.0
#include "common/job/same_job.h"

#include <google/protobuf/util/message_differencer.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/job/job_file.h"

namespace tributary {
namespace {

// Returns the first difference; empty if there is none.
std::string FirstDifference(const v1::JobSpec& earlier,
                            const v1::JobSpec& job) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string all;
  differencer.ReportDifferencesToString(&all);
  if (differencer.Compare(earlier, job)) return "";
  absl::string_view first = all;
  first = first.substr(0, first.find('\n'));
  absl::ConsumePrefix(&first, "modified: ");
  return first.empty() ? "another job" : std::string(first);
}

}  // namespace

std::string OtherJob(const v1::JobSpec& earlier, const v1::JobSpec& job) {
  std::string difference = FirstDifference(earlier, job);
  if (difference.empty()) return "";
  const absl::StatusOr<v1::JobSpec> read =
      ParseJob(JobToYaml(earlier), "job.yaml");
  return read.ok() ? FirstDifference(*read, job) : difference;
}

}  // namespace tributary
