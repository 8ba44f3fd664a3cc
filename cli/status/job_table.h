// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/job_register.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A job as `tributary list` shows it.
struct ListedJob {
  KnownJob known;
  std::optional<v1::JobStatusResponse> status;  // its coordinator's answer
  std::string state = "";  // in words, if there is no answer
};

// Returns a table with a line for each job, or a sentence if there are no jobs.
// Ages are at `now_micros` since 1970.
std::string JobTable(const std::vector<ListedJob>& jobs, int64_t now_micros);

// Returns a JSON array of objects and a newline.
std::string JobListJson(const std::vector<ListedJob>& jobs);

}  // namespace tributary
