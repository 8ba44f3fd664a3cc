#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tributary {

// Runs the `tributary-worker` beside this program with these arguments and
// returns the last line that it has written. FailedPrecondition with that line
// when it fails, DeadlineExceeded when it takes longer than `timeout`.
// Interrupts::Install comes first; the worker dies with this process.
absl::StatusOr<std::string> AskWorker(const std::vector<std::string>& arguments,
                                      absl::Duration timeout);

}  // namespace tributary
