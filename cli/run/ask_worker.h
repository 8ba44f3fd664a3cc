// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/run/processes/hosts.h"

namespace tributary {

// Runs `count` processes of the `tributary-worker` beside this program at the
// same time on `host`, all with these arguments, and returns the last line that
// each has printed. Errors contain that line: InvalidArgument when a process
// refuses the request (exit code 2), FailedPrecondition when one fails
// otherwise. DeadlineExceeded when they take longer than `timeout`. Call
// Interrupts::Install first; the workers, or their launchers, die with this
// process.
absl::StatusOr<std::vector<std::string>> AskWorkers(
    const Host& host, int count, const std::vector<std::string>& arguments,
    absl::Duration timeout);

// The remote end of a link measurement: a `tributary-worker --serve-links` on
// `host`. The destructor ends the worker or its launcher; the worker ends by
// itself after `timeout`.
class LinkFarEnd {
 public:
  // insecure_groups: allows listening to other machines. Errors as AskWorkers.
  static absl::StatusOr<std::unique_ptr<LinkFarEnd>> Start(
      const Host& host, bool insecure_groups, absl::Duration timeout);
  virtual ~LinkFarEnd() = default;
  virtual std::string address() const = 0;  // HOST:PORT
};

}  // namespace tributary
