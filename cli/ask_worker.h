#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tributary {

// Runs so many of the `tributary-worker` beside this program at once, with the
// same arguments, and returns the last line that each has written.
// FailedPrecondition with that line when one fails, DeadlineExceeded when they
// take longer than `timeout`. Interrupts::Install comes first; the workers die
// with this process.
absl::StatusOr<std::vector<std::string>> AskWorkers(
    int count, const std::vector<std::string>& arguments,
    absl::Duration timeout);

// The far end of a measurement of this machine's loopback: a `tributary-worker
// --serve-links`, ended by the destructor.
class LinkFarEnd {
 public:
  // Errors as AskWorkers'.
  static absl::StatusOr<std::unique_ptr<LinkFarEnd>> Start();
  virtual ~LinkFarEnd() = default;
  virtual std::string address() const = 0;  // HOST:PORT
};

}  // namespace tributary
