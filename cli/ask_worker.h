#pragma once

#include <memory>
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

// The far end of a measurement of this machine's loopback: a `tributary-worker
// --serve-links`, ended by the destructor.
class LinkFarEnd {
 public:
  // Errors as AskWorker's.
  static absl::StatusOr<std::unique_ptr<LinkFarEnd>> Start();
  virtual ~LinkFarEnd() = default;
  virtual std::string address() const = 0;  // HOST:PORT
};

}  // namespace tributary
