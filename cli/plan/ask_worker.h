#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/run/hosts.h"

namespace tributary {

// Runs so many of the `tributary-worker` beside this program at once on `host`,
// with the same arguments, and returns the last line that each has written.
// FailedPrecondition with that line when one fails, DeadlineExceeded when they
// take longer than `timeout`. Interrupts::Install comes first; the workers, or
// what launches them, die with this process.
absl::StatusOr<std::vector<std::string>> AskWorkers(
    const Host& host, int count, const std::vector<std::string>& arguments,
    absl::Duration timeout);

// The far end of a measurement of the link to `host`: a `tributary-worker
// --serve-links`. The destructor ends it, or what has launched it; by itself it
// ends after `timeout`.
class LinkFarEnd {
 public:
  // Errors as AskWorkers'.
  static absl::StatusOr<std::unique_ptr<LinkFarEnd>> Start(
      const Host& host, absl::Duration timeout);
  virtual ~LinkFarEnd() = default;
  virtual std::string address() const = 0;  // HOST:PORT
};

}  // namespace tributary
