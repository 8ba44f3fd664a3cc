// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/step_range.h"
#include "cli/trace/chrome_trace.h"
#include "cli/trace/recorded_trace.h"
#include "common/files/atomic_file.h"
#include "common/host/small_file.h"
#include "common/job/files/output_guard.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kTraceDescription[] =
    "Writes what every process of a run did in single steps, for "
    "ui.perfetto.dev.";
constexpr char kTraceFooter[] =
    "The run must have recorded these steps:\n"
    "  tributary train JOB.yaml --run-dir runs/a --trace 100-105\n"
    "  tributary trace runs/a --steps 100-105\n\n"
    "Exit codes: 0 done, 1 the file cannot be written, 2 the steps are not\n"
    "recorded, or the command line is wrong.";

struct TraceOptions {
  std::string run;
  std::string steps;   // empty: all that are recorded
  std::string output;  // empty: RUN/trace-A-B.json
};

// Returns the steps to write. An error says which steps the run recorded, and
// how to record others.
absl::StatusOr<StepNumbers> WantedSteps(const TraceOptions& options,
                                        const RecordedTrace& trace) {
  const std::set<int64_t> recorded = trace.Steps();
  if (recorded.empty()) {
    return absl::NotFoundError(
        absl::StrCat(options.run, " recorded no event of a step"));
  }
  if (options.steps.empty())
    return StepNumbers{*recorded.begin(), *recorded.rbegin()};
  absl::StatusOr<StepNumbers> steps = ParseStepNumbers(options.steps);
  if (!steps.ok()) return steps;
  for (int64_t step = steps->first; step <= steps->last; ++step) {
    if (recorded.contains(step)) continue;
    return absl::NotFoundError(absl::StrCat(
        options.run, " recorded the steps ", StepNumbersText(recorded),
        ", not step ", step, "; train with --trace ", options.steps,
        " to record these"));
  }
  return steps;
}

absl::StatusOr<RecordedTrace> Read(const std::string& run) {
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(run));
  if (std::error_code error;
      !std::filesystem::exists(run + "/job.yaml", error)) {
    return absl::NotFoundError(
        absl::StrCat(run, " is no run directory: it has no job.yaml"));
  }
  absl::StatusOr<RecordedTrace> trace = ReadRecordedTrace(run);
  if (!absl::IsNotFound(trace.status())) return trace;
  return absl::NotFoundError(absl::StrCat(
      run,
      " recorded no steps; train with --trace 100-105, or with the key "
      "trace in the job file, to record some"));
}

int Trace(const TraceOptions& options) {
  const absl::StatusOr<RecordedTrace> trace = Read(options.run);
  const absl::StatusOr<StepNumbers> steps =
      trace.ok() ? WantedSteps(options, *trace) : trace.status();
  if (!steps.ok()) {
    PrintError(steps.status().message());
    return kExitRefused;
  }
  const std::string path =
      options.output.empty()
          ? absl::StrCat(options.run, "/trace-", steps->first, "-", steps->last,
                         ".json")
          : options.output;
  if (const absl::Status kept = CheckOutput({.path = path,
                                             .option = "--output",
                                             .read = {},
                                             .runs = {options.run}});
      !kept.ok()) {
    PrintError(kept.message());
    return kExitRefused;
  }
  if (const absl::Status written =
          WriteOutput(path, ChromeTrace(*trace, *steps));
      !written.ok()) {
    PrintError(written.message());
    return kExitFailed;
  }
  printf("%s: steps %s of %s; open it at ui.perfetto.dev\n", path.c_str(),
         absl::StrCat(steps->first, "-", steps->last).c_str(),
         absl::StrCat(trace->processes.size(), " processes").c_str());
  if (trace->lost() > 0) {
    printf("%s events are missing: they were too many to keep%s\n",
           absl::StrCat(trace->lost()).c_str(),
           trace->full ? ", and trace.jsonl had reached its limit" : "");
  }
  return kExitDone;
}

}  // namespace

void AddTraceCommand(CommandLine& program) {
  auto options = std::make_shared<TraceOptions>();
  CommandLine trace = program.AddCommand("trace", kTraceDescription);
  trace.SetFooter(kTraceFooter);
  trace.AddOption("RUN", &options->run, "the run directory").Required();
  trace.AddOption("--steps", &options->steps,
                  "the steps to write, as in 100-105; default: all that the\n"
                  "run recorded");
  trace.AddOption("--output", &options->output,
                  "the file to write; default: trace-A-B.json in RUN");
  trace.SetAction([options] { return Trace(*options); });
}

}  // namespace tributary
