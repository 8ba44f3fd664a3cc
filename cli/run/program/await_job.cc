// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program/await_job.h"

#include <chrono>
#include <csignal>
#include <filesystem>
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
    if (const auto reason = intake.stop_reason()) {
      return absl::CancelledError(absl::StrCat(
          "stopped before the program said what it trains, as asked: ",
          reason->empty() ? "no reason was given" : *reason));
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

std::unique_ptr<JobRegister::Entry> RegisterWaiting(
    const std::string& name, const JobIntake& intake,
    const std::string& run_directory, bool encrypted) {
  RegisteredJob job;
  job.name = name;
  job.encrypted = encrypted;
  job.coordinator = intake.address();
  std::error_code error;
  if (!run_directory.empty()) {
    job.run_directory =
        std::filesystem::canonical(run_directory, error).string();
  }
  job.started_micros = std::chrono::duration_cast<std::chrono::microseconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  auto entry = JobRegister(JobRegisterFolder()).Add(std::move(job));
  return entry.ok() ? *std::move(entry) : nullptr;
}

int ExitCodeOf(const absl::Status& no_job) {
  if (!absl::IsCancelled(no_job)) return kExitFailed;
  const int signal = Interrupts::Requested();
  return 128 + (signal == 0 ? SIGINT : signal);
}

}  // namespace tributary
