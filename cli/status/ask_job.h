// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/jobs/find_job.h"
#include "cli/status/why.h"

namespace tributary {

// How long the commands wait for an answer of a coordinator.
inline constexpr absl::Duration kStatusTimeout = absl::Seconds(2);

// The job's status. Unavailable: its coordinator cannot be reached, or does not
// run.
absl::StatusOr<v1::JobStatusResponse> AskStatus(
    const FoundJob& job, absl::Duration timeout = kStatusTimeout);

// Why a job advances or does not: asks its coordinator, several times where the
// pace matters, and looks at its processes on this host and at its run
// directory.
struct AskedWhy {
  WhyAnswer answer;
  // The job's, as far as it is known.
  std::string name;
  int64_t step = 0;
  int64_t total_steps = 0;
  // Whether the job lives or is done: its exit code is 0.
  bool well = false;
  // Whether no coordinator leads the job any more.
  bool over = false;
};
AskedWhy AskWhy(const FoundJob& job);
// The same of a job whose coordinator has just not answered, and why.
AskedWhy WhyGone(const FoundJob& job, const absl::Status& unreachable);

// Why a command cannot do what it wants of a job whose coordinator has just not
// answered. `needless`: what there is nothing to do of a job that is over:
// "stop".
std::string RefusalText(const FoundJob& job, const absl::Status& unreachable,
                        absl::string_view needless);

// The job that the choice means, with a client. Otherwise prints why not, sets
// the exit code and returns nothing. `needless` as in RefusalText.
std::optional<FoundJob> FindRunningJob(const JobChoice& choice,
                                       absl::string_view needless,
                                       int* exit_code);

// Prints why the choice names no job, and returns the exit code.
int RefuseChoice(const absl::Status& status);

}  // namespace tributary
