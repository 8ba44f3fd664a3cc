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

// Looks at the coordinator's process once more, and at its port.
CoordinatorLife LookAgain(const FoundJob& job);

// Explains why a job advances or does not: asks its coordinator (several times
// if the pace matters), and looks at its processes on this host and at its run
// directory.
struct AskedWhy {
  WhyAnswer answer;
  // Name and steps of the job, as far as they are known.
  std::string name;
  int64_t step = 0;
  int64_t total_steps = 0;
  // Whether the job lives or is done: the command's exit code is 0.
  bool well = false;
  // Whether no coordinator leads the job any more.
  bool over = false;
};
AskedWhy AskWhy(const FoundJob& job);
// The same for a job whose coordinator has just not answered: `unreachable`.
AskedWhy WhyGone(const FoundJob& job, const absl::Status& unreachable);

// Says that the coordinator of a job has not answered, when nothing else is
// known about the job.
std::string UnknownEndText(const absl::Status& unreachable);

// Says why a command cannot act on a job whose coordinator has just not
// answered. `needless`: the verb of the act that is pointless once the job is
// over, such as "stop".
std::string RefusalText(const FoundJob& job, const absl::Status& unreachable,
                        absl::string_view needless);

// Returns the job that the choice means, with a client. Otherwise prints the
// reason, sets the exit code and returns nullopt. `needless` as in RefusalText.
std::optional<FoundJob> FindRunningJob(const JobChoice& choice,
                                       absl::string_view needless,
                                       int* exit_code);

// Prints why the choice names no job, and returns the exit code.
int RefuseChoice(const absl::Status& status);

}  // namespace tributary
