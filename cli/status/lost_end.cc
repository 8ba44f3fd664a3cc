// SPDX-License-Identifier: Apache-2.0
#include "cli/status/lost_end.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/jobs/run_outcome.h"
#include "common/status/shell_text.h"

namespace tributary {

std::string ContinueText(const KnownJob& known, int64_t checkpoint_step) {
  const RegisteredJob& job = known.job;
  const std::string& run = job.run_directory;
  if (run.empty()) return "";
  if (known.directory_is_gone) return "; its run directory is gone";
  if (job.command == kCoordinatorCommand) {
    return absl::StrCat(
        "; start the same tributary-coordinator command again, "
        "with `",
        ShellText({"--run-dir", run}), "`: the job goes on where it was");
  }
  if (job.command == kTrainCommand && checkpoint_step > 0) {
    return absl::StrCat("; `",
                        ShellText({"tributary", "train", "--resume", run}),
                        "` goes on from the checkpoint of step ",
                        WithThousands(checkpoint_step));
  }
  return absl::StrCat("; `",
                      ShellText({"tributary", "checkpoint", "list", run}),
                      "` shows whether it can go on");
}

bool IsGoneDirectory(const std::string& run_directory) {
  std::error_code error;
  return !run_directory.empty() &&
         !std::filesystem::exists(run_directory, error) && !error;
}

absl::Status CheckEndWithoutSummary(
    const std::string& title, const KnownJob& known,
    const std::optional<v1::JobStatusResponse>& last, bool checkpoint) {
  // Before a program has submitted its job, there is no run directory.
  if (!known.gone() || known.job.run_directory.empty() ||
      (last && last->phase() == v1::JOB_PHASE_DONE)) {
    return absl::OkStatus();
  }
  const bool failed = last && last->phase() == v1::JOB_PHASE_FAILED &&
                      last->cause() != v1::CAUSE_STOP;
  return absl::DataLossError(absl::StrCat(
      title, " has ended",
      last && last->step() > 0
          ? absl::StrCat(" after step ", WithThousands(last->step()))
          : "",
      " without a summary, so it was killed or could not write one",
      failed ? absl::StrCat("; it had failed: ", last->message()) : "",
      checkpoint ? "; the checkpoint that was asked for may be missing" : "",
      ContinueText(known, last ? last->checkpoint_step() : 0)));
}

}  // namespace tributary
