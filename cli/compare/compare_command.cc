// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/compare/compare_jobs.h"
#include "cli/compare/compare_predictions.h"
#include "cli/compare/compare_report.h"
#include "cli/compare/compare_table.h"
#include "cli/compare/page/report_html.h"
#include "cli/compare/report_json.h"
#include "cli/plan/cost_options.h"
#include "cli/run/check_data.h"
#include "cli/run/local_run.h"
#include "cli/run/processes/hosts.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/command_line/access_flags.h"
#include "common/files/atomic_file.h"
#include "common/job/files/job_files.h"
#include "common/job/files/output_guard.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_directory.h"

namespace tributary {
namespace {

constexpr char kCompareDescription[] =
    "Runs one job under several strategies and shows what each costs.";
constexpr char kCompareFooter[] =
    "Every run sees the same batches from the same initial weights, however\n"
    "many workers share them; one worker alone is always run, as the measure.\n"
    "Leaves a run directory for each, compare.html (one page with charts and\n"
    "nothing from elsewhere) and compare.json. docs/comparing-runs.md says how "
    "to\n"
    "read them.\n\n"
    "Before the runs the cost model of `tributary plan` predicts each step, "
    "with\n"
    "links and computing as measured on this machine, or on the first of the\n"
    "workers' hosts and from there to another, or as given; prediction and\n"
    "measurement stand side by side.\n\n"
    "Strategies, joined by commas; by default the job's own and all that can\n"
    "run it:\n";
constexpr char kCompareExamples[] =
    "\nExamples:\n"
    "  tributary compare job.yaml --workers 2,4\n"
    "  tributary compare job.yaml --set training.epochs=1 \\\n"
    "      --strategies parameter_server,parameter_server:ssp:2\n"
    "  tributary compare job.yaml --worker-hosts 10.0.0.2,10.0.0.3 \\\n"
    "      --listen 10.0.0.1:0\n"
    "  tributary compare --from runs/a --from runs/b --report ab.html\n\n"
    "Exit codes: 0 done, 1 a run failed, 2 command line or job are wrong,\n"
    "130 interrupted.";

// The report's paths; empty: not written, or written to the default path.
struct ReportPaths {
  std::string html, json;
};

struct CompareOptions {
  CommandJob job;
  std::vector<std::string> strategies;
  std::vector<int> workers;
  std::vector<int> servers;
  std::string run_dir;
  ReportPaths report;
  std::vector<std::string> from;
  HostOptions hosts;
  TelemetryOptions telemetry;
  CostOptions cost;
  bool no_prediction = false;
  bool dry_run = false;
};

absl::StatusOr<CompareJobs> PlanJobs(const CompareOptions& options) {
  CompareJobsOptions wanted;
  TRIBUTARY_ASSIGN_OR_RETURN(
      wanted.job, ReadModelJob(options.job.path, options.job.Overrides()));
  for (const std::string& name : options.strategies) {
    TRIBUTARY_ASSIGN_OR_RETURN(StrategyChoice choice, ParseStrategy(name));
    wanted.strategies.push_back(std::move(choice));
  }
  wanted.workers = options.workers;
  wanted.servers = options.servers;
  return MakeCompareJobs(wanted);
}

void PrintJobs(const CompareJobs& jobs) {
  for (const CompareJob& job : jobs.jobs) {
    absl::PrintF("%s: %d workers, %d servers\n", job.name,
                 job.job.cluster().workers(), job.job.cluster().servers());
  }
  for (const std::string& note : jobs.notes) absl::PrintF("%s\n", note);
}

// Predicts each job with the cost model before any job runs. A failed
// prediction becomes a note.
std::vector<std::string> PredictAll(const CompareOptions& options,
                                    const Hosts& hosts, CompareJobs* jobs) {
  if (options.no_prediction) return {};
  absl::PrintF("== measures what predictions start from\n");
  fflush(stdout);
  absl::StatusOr<std::vector<std::string>> made = PredictJobs(
      *jobs, options.job.path, options.job.Overrides(), options.cost, hosts);
  if (made.ok()) return *std::move(made);
  jobs->notes.push_back(
      absl::StrCat("no predictions: ", made.status().message()));
  return {};
}

// Trains one job after the other; returns the first exit code that is not 0.
// Stops at an interrupt. predictions: empty, or one for each job.
int RunAll(const CompareJobs& jobs, const std::vector<std::string>& predictions,
           const std::string& data_record, const std::string& folder,
           const CompareOptions& options, const Hosts& hosts) {
  int code = kExitDone;
  for (size_t i = 0; i < jobs.jobs.size(); ++i) {
    const CompareJob& job = jobs.jobs[i];
    absl::PrintF("== %s, %d of %d\n", job.name, i + 1, jobs.jobs.size());
    fflush(stdout);
    const std::string run = folder + "/" + job.folder;
    const int ended = RunLocally({.job = job.job,
                                  .run_dir = run,
                                  .hosts = hosts,
                                  .telemetry = options.telemetry,
                                  .data_record = data_record});
    if (code == kExitDone) code = ended;
    if (i < predictions.size() && !predictions[i].empty()) {
      const absl::Status kept =
          WriteFileAtomically(run + "/prediction.json", predictions[i]);
      if (!kept.ok()) PrintError(kept.message());
    }
    if (Interrupts::Requested() != 0) break;
  }
  return code;
}

absl::StatusOr<CompareReport> ReadReport(
    const std::vector<std::string>& folders) {
  std::vector<RunData> runs;
  for (const std::string& folder : folders) {
    TRIBUTARY_ASSIGN_OR_RETURN(RunData run, ReadRun(folder));
    runs.push_back(std::move(run));
  }
  return MakeCompareReport(runs);
}

// Prints the tables and writes the files that have a path.
absl::Status ShowReport(const CompareReport& report, const ReportPaths& paths) {
  absl::PrintF("\n%s", ReportText(report));
  if (!paths.json.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(WriteOutput(paths.json, ReportJson(report)));
  }
  if (!paths.html.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(WriteOutput(paths.html, ReportHtml(report)));
    absl::PrintF("\nreport: %s\n", paths.html);
  }
  return absl::OkStatus();
}

// InvalidArgument when a report would replace one of these files, or a file of
// these runs.
absl::Status CheckReports(const ReportPaths& paths,
                          const std::vector<std::string>& read,
                          const std::vector<std::string>& runs) {
  TRIBUTARY_RETURN_IF_ERROR(CheckOutput({paths.html, "--report", read, runs}));
  return CheckOutput({paths.json, "--json", read, runs});
}

int FailComparison(const absl::Status& status, int code) {
  PrintError(status.message());
  return code;
}

int CompareExisting(const CompareOptions& options) {
  const absl::StatusOr<CompareReport> report = ReadReport(options.from);
  if (!report.ok()) return FailComparison(report.status(), kExitRefused);
  const absl::Status kept = CheckReports(options.report, {}, options.from);
  if (!kept.ok()) return FailComparison(kept, kExitRefused);
  const absl::Status shown = ShowReport(*report, options.report);
  return shown.ok() ? kExitDone : FailComparison(shown, kExitFailed);
}

int CompareNew(const CompareOptions& options) {
  absl::StatusOr<CompareJobs> jobs = PlanJobs(options);
  if (!jobs.ok()) return FailComparison(jobs.status(), kExitRefused);
  std::vector<std::string> read = FilesOfJob(jobs->jobs[0].job);
  read.push_back(options.job.path);
  const absl::Status kept = CheckReports(options.report, read, {});
  if (!kept.ok()) return FailComparison(kept, kExitRefused);
  const absl::StatusOr<Hosts> hosts = Hosts::Create(options.hosts);
  if (!hosts.ok()) return FailComparison(hosts.status(), kExitRefused);
  for (const CompareJob& job : jobs->jobs) {
    const absl::Status groups =
        CheckGroups(job.job, *hosts, /*insecure=*/false);
    if (!groups.ok()) return FailComparison(groups, kExitRefused);
  }
  Interrupts::Install();
  std::string data_record;
  if (!hosts->given()) {
    const absl::Status fits =
        CheckDataFits(options.job.path, options.job.Overrides(), &data_record);
    if (!fits.ok()) return RefuseData(fits);
  }
  if (options.dry_run) {
    PrintJobs(*jobs);
    return FinishAnswer();
  }
  const absl::StatusOr<std::string> folder = RunDirectory::MakeFolder(
      options.run_dir, absl::StrCat("compare-", jobs->jobs[0].job.name()),
      std::time(nullptr));
  if (!folder.ok()) return FailComparison(folder.status(), kExitRefused);
  const std::vector<std::string> predictions =
      PredictAll(options, *hosts, &*jobs);
  if (Interrupts::Requested() != 0) return 128 + Interrupts::Requested();
  const int code =
      RunAll(*jobs, predictions, data_record, *folder, options, *hosts);

  std::vector<std::string> folders;
  std::error_code error;
  for (const CompareJob& job : jobs->jobs) {
    const std::string run = *folder + "/" + job.folder;
    if (std::filesystem::exists(run + "/job.yaml", error)) {
      folders.push_back(run);
    }
  }
  absl::StatusOr<CompareReport> report = ReadReport(folders);
  if (!report.ok()) return FailComparison(report.status(), kExitFailed);
  report->notes.insert(report->notes.end(), jobs->notes.begin(),
                       jobs->notes.end());
  const auto or_else = [](const std::string& path, std::string otherwise) {
    return path.empty() ? std::move(otherwise) : path;
  };
  const absl::Status shown = ShowReport(
      *report, {or_else(options.report.html, *folder + "/compare.html"),
                or_else(options.report.json, *folder + "/compare.json")});
  return shown.ok() ? code : FailComparison(shown, kExitFailed);
}

int Compare(const CompareOptions& options) {
  if (options.job.path.empty() == options.from.empty()) {
    PrintError("either a JOB file or --from with run directories is wanted");
    return kExitRefused;
  }
  return options.from.empty() ? CompareNew(options) : CompareExisting(options);
}

void AddOptions(CommandLine& command, CompareOptions* options) {
  AddJobPath(command, &options->job);
  command
      .AddOption("--strategies", &options->strategies,
                 "which to run, after the single process")
      .TypeName("NAME,...")
      .Separator(',')
      .OnePerFlag();
  command
      .AddOption("--workers", &options->workers,
                 "workers, or several numbers of them; default: the job's")
      .TypeName("N,...")
      .Separator(',')
      .OnePerFlag()
      .Range(1, 1024);
  command
      .AddOption("--servers", &options->servers,
                 "servers, where a strategy has some; default: the job's")
      .TypeName("N,...")
      .Separator(',')
      .OnePerFlag()
      .Range(1, 256);
  AddJobChanges(command, &options->job);
  command.AddOption("--run-dir", &options->run_dir,
                    "new or empty folder for the runs and the report;\n"
                    "default: runs/compare-NAME-DATE-TIME");
  command
      .AddOption("--report", &options->report.html,
                 "the page; default: compare.html among the runs")
      .TypeName("FILE.html");
  command
      .AddOption("--json", &options->report.json,
                 "the same for programs; default: compare.json there")
      .TypeName("FILE");
  command
      .AddOption("--from", &options->from,
                 "compare run directories that are there; may be repeated.\n"
                 "Files are written where --report and --json say")
      .TypeName("DIR");
  AddListenOption(command, &options->hosts.listen);
  AddHostOptions(command, &options->hosts);
  AddInsecureGroupsFlag(command, &options->hosts.insecure_groups);
  AddCostOptions(command, &options->cost);
  command.AddFlag("--no-prediction", &options->no_prediction,
                  "neither measure nor predict before the runs");
  AddTelemetryOptions(command, &options->telemetry);
  command.AddFlag("--dry-run", &options->dry_run,
                  "print what would run and stop");
}

}  // namespace

void AddCompareCommand(CommandLine& program) {
  auto options = std::make_shared<CompareOptions>();
  CommandLine compare = program.AddCommand("compare", kCompareDescription);
  compare.SetFooter(
      absl::StrCat(kCompareFooter, StrategyHelp(), kCompareExamples));
  AddOptions(compare, options.get());
  compare.SetAction([options] { return Compare(*options); });
}

}  // namespace tributary
