// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/jobs/find_job.h"
#include "cli/status/ask_job.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/status/printable.h"

namespace tributary {
namespace {

constexpr absl::Duration kAskTimeout = absl::Seconds(10);

constexpr char kTakeDescription[] =
    "Takes a checkpoint of a running job and waits for it.";
constexpr char kTakeFooter[] =
    "Every worker waits after its step until the last one has finished the\n"
    "same step and the servers have copied their weights; then training goes\n"
    "on, with the same results. The job must write checkpoints: with\n"
    "checkpoint.every_steps, or with checkpoint.at_end, which is the default.\n"
    "Useful before a machine is taken away: after the loss the job goes on\n"
    "from here. A checkpoint that is there already and has every step that "
    "has\n"
    "begun is enough.\n\n"
    "Examples:\n"
    "  tributary checkpoint take           # of the only job of yours here\n"
    "  tributary checkpoint take runs/digits\n"
    "  tributary checkpoint take --coordinator 10.0.0.1:7070\n\n"
    "Exit codes: 0 the checkpoint is there, 1 it failed, the job is over or\n"
    "cannot be reached, 2 the command line is wrong.";

struct TakeOptions {
  JobChoice choice;
  double timeout_seconds = 600;
};

absl::StatusOr<v1::TakeCheckpointResponse> AskAndWait(CoordinatorClient& client,
                                                      absl::Duration timeout) {
  absl::StatusOr<v1::TakeCheckpointResponse> answer =
      client.TakeCheckpoint(v1::TakeCheckpointRequest(), kAskTimeout);
  if (!answer.ok() || answer->step() > 0) return answer;
  v1::TakeCheckpointRequest request;
  request.set_after(answer->after());
  return client.TakeCheckpoint(request, timeout);
}

int Take(const TakeOptions& options) {
  int exit_code = kExitDone;
  const std::optional<FoundJob> job =
      FindRunningJob(options.choice, "save", &exit_code);
  if (!job) return exit_code;
  const absl::Duration timeout = absl::Seconds(options.timeout_seconds);
  const absl::StatusOr<v1::TakeCheckpointResponse> taken =
      AskAndWait(*job->client, timeout);
  if (absl::IsDeadlineExceeded(taken.status())) {
    PrintError(absl::StrCat(job->Title(), " has taken no checkpoint within ",
                            absl::FormatDuration(timeout), ": it ",
                            taken.status().message()));
    return kExitFailed;
  }
  if (absl::IsUnavailable(taken.status())) {
    PrintError(RefusalText(*job, taken.status(), "save"));
    return kExitFailed;
  }
  if (!taken.ok()) {
    PrintError(taken.status().message());
    return kExitFailed;
  }
  std::printf("%s\n",
              Printable(absl::StrCat("checkpoint of step ", taken->step(), ": ",
                                     taken->folder()))
                  .c_str());
  return kExitDone;
}

}  // namespace

void AddCheckpointTakeCommand(CommandLine& checkpoint) {
  auto options = std::make_shared<TakeOptions>();
  CommandLine take = checkpoint.AddCommand("take", kTakeDescription);
  take.SetFooter(kTakeFooter);
  AddJobChoice(take, &options->choice);
  take.AddOption("--timeout", &options->timeout_seconds,
                 "seconds to wait for the checkpoint")
      .ShowDefault()
      .Positive();
  take.SetAction([options] { return Take(*options); });
}

}  // namespace tributary
