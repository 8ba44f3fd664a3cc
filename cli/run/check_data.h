// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tributary {

// Lets a worker on this machine read the job's data and compare them with its
// model, before anything else starts. If the data fit, prints the worker's
// notes about them on standard error. InvalidArgument: they do not fit; the
// sentence begins with the place in the job file. Cancelled: interrupted. OK
// also if the worker cannot tell: the job's own workers will. Call
// Interrupts::Install first. data_record: receives the numbers and checksums of
// the samples and initial weights as JSON, for JobRun::Options, if the worker
// has read them.
absl::Status CheckDataFits(const std::string& job_path,
                           const std::vector<std::string>& overrides,
                           std::string* data_record = nullptr);

// For a command whose job's data do not fit: prints why and returns
// its exit code.
int RefuseData(const absl::Status& status);

}  // namespace tributary
