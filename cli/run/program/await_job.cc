// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program/await_job.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/host/steady_waits.h"

namespace tributary {
namespace {

constexpr absl::Duration kProgramLook = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<v1::JobSpec> AwaitJob(
    JobIntake& intake, absl::Duration timeout,
    const std::function<std::string()>& watch) {
  const absl::Duration deadline = SteadyNow() + timeout;
  while (true) {
    std::optional<v1::JobSpec> job = intake.Await(kProgramLook);
    if (job) return *std::move(job);
    if (Interrupts::Requested() != 0) {
      return absl::CancelledError(
          "stopped before the program said what it trains");
    }
    if (std::string why = watch(); !why.empty()) {
      return absl::AbortedError(why);
    }
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no program has said what it trains within ",
                       absl::FormatDuration(timeout)));
    }
  }
}

int ExitCodeOf(const absl::Status& no_job) {
  return absl::IsCancelled(no_job) ? 128 + Interrupts::Requested()
                                   : kExitFailed;
}

}  // namespace tributary
