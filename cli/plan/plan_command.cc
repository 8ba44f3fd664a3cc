// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/plan/cost_basis.h"
#include "cli/plan/cost_options.h"
#include "cli/plan/plan_report.h"
#include "cli/run/check_data.h"
#include "cli/run/job/job_run.h"
#include "cli/terminal/append_file.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "cli/terminal/interrupts.h"
#include "common/cost/strategies.h"
#include "common/cost/strategy_job.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kPlanDescription[] =
    "Predicts a step's time and memory under every strategy.";
constexpr char kPlanFooter[] =
    "Every process has a link of the given rate each way. --measure times the\n"
    "job's model on this machine, alone on it; --probe measures the link to a\n"
    "host on which `tributary-worker --serve-links 0.0.0.0:7079\n"
    "--insecure-groups` runs.\n"
    "docs/parallelism.md derives the model and says what it leaves out.\n\n"
    "Examples:\n"
    "  tributary plan job.yaml --workers 4 --measure \\\n"
    "      --bandwidth 1Gbit --latency 0.2ms\n"
    "  tributary plan job.yaml --workers 8 --servers 4 --compute 100 \\\n"
    "      --bandwidth 10Gbit --json\n"
    "  tributary plan job.yaml --measure --probe 10.0.0.2:7079\n\n"
    "Exit codes: 0 done, 1 a measurement failed, 2 command line or job are "
    "wrong.";

struct PlanOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  int workers = 0;  // 0: as in the job file
  int servers = 0;
  CostOptions cost;
  bool measure = false;
  bool json = false;
};

absl::StatusOr<CostQuestions> QuestionsOf(const PlanOptions& options) {
  if (!options.cost.links_known()) {
    return absl::InvalidArgumentError(
        "how fast links are is wanted: --bandwidth RATE or --probe HOST:PORT");
  }
  if (!options.measure && !options.cost.compute_known()) {
    return absl::InvalidArgumentError(
        "how fast a worker computes is wanted: --compute GFLOPS or --measure");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(CostQuestions questions,
                             QuestionsOf(options.cost));
  questions.job_path = options.job_path;
  questions.overrides = options.overrides;
  return questions;
}

absl::StatusOr<PlanReport> MakePlan(const PlanOptions& options,
                                    const v1::JobSpec& job,
                                    CostQuestions questions) {
  if (options.measure) {
    const CostInputs own = InputsOfJob(job);
    questions.rows = RowsToMeasure(own);
    questions.workers = own.strategy.workers;
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const CostBasis basis,
                             FindCostBasis(job, questions));
  PlanReport report;
  report.job_name = job.name();
  report.parameter_elements = basis.model.parameter_elements();
  report.measured = options.measure || !options.cost.measurement.empty();
  report.inputs = InputsFrom(job, basis);
  // The strategy of a job without servers names no number of servers.
  const int servers =
      options.servers > 0 ? options.servers : report.inputs.strategy.servers;
  const auto check = [&job](const Strategy& strategy) {
    return JobWithStrategy(job, strategy).status();
  };
  TRIBUTARY_ASSIGN_OR_RETURN(report.plan,
                             PlanStrategies(report.inputs, servers, check));
  TRIBUTARY_ASSIGN_OR_RETURN(report.own, PredictOwn(report.inputs));
  report.inputs.model = nullptr;  // the model ends with the basis
  return report;
}

int Plan(PlanOptions options) {
  const auto fail = [](const absl::Status& status, int exit_code) {
    PrintError(status.message());
    return exit_code;
  };
  if (options.workers > 0) {
    options.overrides.push_back(
        absl::StrCat("cluster.workers=", options.workers));
  }
  if (options.servers > 0) {
    options.overrides.push_back(
        absl::StrCat("cluster.servers=", options.servers));
  }
  const absl::StatusOr<CostQuestions> questions = QuestionsOf(options);
  if (!questions.ok()) return fail(questions.status(), kExitRefused);
  const absl::StatusOr<v1::JobSpec> job =
      ReadModelJob(options.job_path, options.overrides);
  if (!job.ok()) return fail(job.status(), kExitRefused);
  Interrupts::Install();
  if (options.cost.sample_shape.empty()) {  // else the data need not be here
    const absl::Status fits =
        CheckDataFits(options.job_path, options.overrides);
    if (!fits.ok()) return RefuseData(fits);
  }
  const absl::StatusOr<PlanReport> report = MakePlan(options, *job, *questions);
  if (!report.ok()) {
    return fail(report.status(), absl::IsInvalidArgument(report.status())
                                     ? kExitRefused
                                     : kExitFailed);
  }
  const std::string page = options.json ? PlanJson(*report) : PlanText(*report);
  return AppendTo(STDOUT_FILENO, "the output", page).ok() ? kExitDone
                                                          : kExitFailed;
}

}  // namespace

void AddPlanCommand(CommandLine& program) {
  auto options = std::make_shared<PlanOptions>();
  CommandLine command = program.AddCommand("plan", kPlanDescription);
  command.SetFooter(kPlanFooter);
  command.AddOption("JOB", &options->job_path, "the job file").Required();
  AddOverrides(command, &options->overrides);
  command
      .AddOption("--workers", &options->workers,
                 "processes that compute; default: the job's")
      .Range(1, 1024);
  command
      .AddOption("--servers", &options->servers,
                 "parameter servers; default: the job's")
      .Range(1, 256);
  AddCostOptions(command, &options->cost);
  command.AddFlag("--measure", &options->measure,
                  "time the job's model on this machine instead");
  command.AddFlag("--json", &options->json, "one JSON object");
  command.SetAction([options] { return Plan(*options); });
}

}  // namespace tributary
