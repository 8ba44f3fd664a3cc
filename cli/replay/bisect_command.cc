// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/replay/bisect.h"
#include "cli/replay/bisect_text.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_steps.h"
#include "cli/run/ask_worker.h"
#include "cli/run/processes/hosts.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kBisectDescription[] =
    "Finds the first step and tensor in which two runs differ, and why.";
constexpr char kBisectFooter[] =
    "Compares the losses, checkpoints and weights that both runs have "
    "recorded,\n"
    "then computes the steps between the last equal checkpoints and the first\n"
    "difference again, from each run's own job and data. A run that did not\n"
    "record what its job gives had a fault, or ran on another machine or with\n"
    "other programs. Nothing in the run directories is changed.\n\n"
    "Examples:\n"
    "  tributary bisect run-a run-b\n"
    "  tributary bisect run-a run-b --json\n\n"
    "Exit codes, as diff has them: 0 equal, 1 different, 2 the two cannot be\n"
    "compared, or wrong command line.";

constexpr absl::Duration kReadData = absl::Minutes(30);

struct BisectOptions {
  std::string a;
  std::string b;
  bool json = false;
};

int RefuseBisection(const absl::Status& status) {
  PrintError(status.message());
  return absl::IsCancelled(status) ? 128 + Interrupts::Requested()
                                   : kExitRefused;
}

absl::StatusOr<std::string> CompareData(const RecordedRun& a,
                                        const RecordedRun& b) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::vector<std::string> lines,
      AskWorkers(
          Host(), 1,
          {"--compare-data", a.folder + "/job.yaml", b.folder + "/job.yaml"},
          kReadData));
  return lines.front();
}

int BisectRuns(const BisectOptions& options) {
  const auto a = ReadRecordedRun(options.a);
  if (!a.ok()) return RefuseBisection(a.status());
  const auto b = ReadRecordedRun(options.b);
  if (!b.ok()) return RefuseBisection(b.status());
  Interrupts::Install();
  const BisectTools tools{
      .replay = ReplaySteps, .compare_data = CompareData, .note = PrintError};
  const auto found = Bisect(*a, *b, tools);
  if (!found.ok()) return RefuseBisection(found.status());
  printf("%s", options.json ? BisectionJson(*found, *a, *b).c_str()
                            : (BisectionText(*found, *a, *b) + "\n").c_str());
  return found->equal() ? kExitDone : kExitFailed;
}

}  // namespace

void AddBisectCommand(CommandLine& program) {
  auto options = std::make_shared<BisectOptions>();
  CommandLine command = program.AddCommand("bisect", kBisectDescription);
  command.SetFooter(kBisectFooter);
  command.AddOption("RUN_A", &options->a, "a run directory").Required();
  command.AddOption("RUN_B", &options->b, "another one").Required();
  command.AddFlag("--json", &options->json, "print JSON");
  command.SetAction([options] { return BisectRuns(*options); });
}

}  // namespace tributary
