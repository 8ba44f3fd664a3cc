#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/append_file.h"
#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/cost_basis.h"
#include "cli/interrupts.h"
#include "cli/job_run.h"
#include "cli/plan_report.h"
#include "cli/quantities.h"
#include "common/cost/strategies.h"
#include "common/job/job_file.h"
#include "common/status_macros.h"

namespace tributary {
namespace {

constexpr char kDescription[] =
    "Predicts a step's time and memory under every strategy.";
constexpr char kFooter[] =
    "Every process has a link of the given rate each way. --measure times the\n"
    "job's model on this machine, alone on it; --probe measures the link to a\n"
    "host on which `tributary-worker --serve-links 0.0.0.0:7079` runs.\n"
    "docs/parallelism.md derives the model and says what it leaves out.\n\n"
    "Examples:\n"
    "  tributary plan examples/digits.yaml --workers 4 --measure \\\n"
    "      --bandwidth 1Gbit --latency 0.2ms\n"
    "  tributary plan job.yaml --workers 8 --servers 4 --compute 100 \\\n"
    "      --bandwidth 10Gbit --json\n"
    "  tributary plan job.yaml --measure --probe 10.0.0.2:7079\n\n"
    "Exit codes: 0 done, 1 a measurement failed, 2 command line or job are "
    "wrong.";

struct PlanOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  int workers = 0;  // 0: as the job file says
  int servers = 0;
  std::string bandwidth;
  std::string latency = "0s";
  std::string burst = "0";
  std::string probe;
  double gflops = 0;
  bool measure = false;
  std::string memory_bandwidth = "20GB";
  double shared_cores = 0;
  std::string sample_shape;
  bool json = false;
};

absl::Status Parse(const char* option, const std::string& text,
                   absl::StatusOr<double> (*parser)(absl::string_view),
                   double* out) {
  const absl::StatusOr<double> value = parser(text);
  if (!value.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", value.status().message()));
  }
  *out = *value;
  return absl::OkStatus();
}

absl::StatusOr<ClusterShape> ClusterOf(const PlanOptions& options) {
  ClusterShape cluster;
  if (options.bandwidth.empty() && options.probe.empty()) {
    return absl::InvalidArgumentError(
        "how fast links are is wanted: --bandwidth RATE or --probe HOST:PORT");
  }
  if (!options.bandwidth.empty()) {
    double rate = 0;
    TRIBUTARY_RETURN_IF_ERROR(
        Parse("--bandwidth", options.bandwidth, ParseRate, &rate));
    cluster.bandwidth = PayloadRate(rate);
  }
  TRIBUTARY_RETURN_IF_ERROR(
      Parse("--latency", options.latency, ParseSeconds, &cluster.latency));
  cluster.latency += ClusterShape::kSoftwareLatency;
  TRIBUTARY_RETURN_IF_ERROR(
      Parse("--burst", options.burst, ParseBytes, &cluster.burst_bytes));
  cluster.shared_cores = options.shared_cores;
  return cluster;
}

absl::StatusOr<ComputeSpeed> ComputeOf(const PlanOptions& options) {
  ComputeSpeed compute;
  if (!options.measure && options.gflops == 0) {
    return absl::InvalidArgumentError(
        "how fast a worker computes is wanted: --compute GFLOPS or --measure");
  }
  if (options.gflops > 0) {
    compute.forward_flops = compute.backward_flops = options.gflops * 1e9;
  }
  compute.cpu_seconds_per_byte = ComputeSpeed::kCpuSecondsPerByte;
  compute.process_bytes = ComputeSpeed::kProcessBytes;
  compute.server_process_bytes = ComputeSpeed::kProcessBytes;
  TRIBUTARY_RETURN_IF_ERROR(Parse("--memory-bandwidth",
                                  options.memory_bandwidth, ParseRate,
                                  &compute.memory_bandwidth));
  return compute;
}

absl::StatusOr<CostQuestions> QuestionsOf(const PlanOptions& options) {
  CostQuestions questions;
  questions.job_path = options.job_path;
  questions.overrides = options.overrides;
  questions.probe = options.probe;
  TRIBUTARY_ASSIGN_OR_RETURN(questions.compute, ComputeOf(options));
  TRIBUTARY_ASSIGN_OR_RETURN(questions.cluster, ClusterOf(options));
  if (!options.sample_shape.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(questions.sample_shape,
                               ParseShape(options.sample_shape));
  }
  return questions;
}

absl::StatusOr<PlanReport> MakePlan(const PlanOptions& options,
                                    const v1::JobSpec& job,
                                    CostQuestions questions) {
  const CostInputs own = InputsOfJob(job);
  if (options.measure) {
    // As many samples as a worker of a data-parallel step has, and a fourth.
    const int64_t rows = std::max<int64_t>(1, own.global_rows / own.workers);
    questions.rows = {std::max<int64_t>(1, rows / 4), rows};
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const CostBasis basis,
                             FindCostBasis(job, questions));
  PlanReport report;
  report.job_name = job.name();
  report.parameter_elements = basis.model.parameter_elements();
  report.measured = options.measure;
  report.inputs = InputsFrom(job, basis);
  // A job without servers has none to name.
  const int servers =
      options.servers > 0 ? options.servers : report.inputs.strategy.servers;
  TRIBUTARY_ASSIGN_OR_RETURN(report.plan,
                             PlanStrategies(report.inputs, servers));
  report.inputs.model = nullptr;  // ends with the basis
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
      ReadJobFile(options.job_path, options.overrides);
  if (!job.ok()) return fail(job.status(), kExitRefused);
  Interrupts::Install();
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

void AddPlanCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", kDescription);
  command->footer(kFooter);
  command->add_option("JOB", options->job_path, "the job file")->required();
  AddOverrides(*command, &options->overrides);
  command
      ->add_option("--workers", options->workers,
                   "processes that compute; default: the job's")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--servers", options->servers,
                   "parameter servers; default: the job's")
      ->check(CLI::Range(1, 256));
  command->add_option("--bandwidth", options->bandwidth,
                      "of a link, each way: 1Gbit, 100MB");
  command->add_option("--latency", options->latency, "one way: 0.2ms")
      ->capture_default_str();
  command
      ->add_option("--burst", options->burst,
                   "bytes that an idle link lets through at once (tc tbf)")
      ->capture_default_str();
  command->add_option("--probe", options->probe,
                      "measure the link to this HOST:PORT instead");
  command
      ->add_option("--compute", options->gflops,
                   "GFLOP/s of a worker in forward and backward")
      ->check(CLI::PositiveNumber);
  command->add_flag("--measure", options->measure,
                    "time the job's model on this machine instead");
  command
      ->add_option("--memory-bandwidth", options->memory_bandwidth,
                   "bytes a second of updates, where they are not measured")
      ->capture_default_str();
  command
      ->add_option("--shared-cores", options->shared_cores,
                   "all processes share so many cores of one machine;\n"
                   "default: each has its own")
      ->check(CLI::Range(0.0, 4096.0));
  command->add_option("--sample-shape", options->sample_shape,
                      "of the data, as 28x28; default: the job or the data\n"
                      "tell it");
  command->add_flag("--json", options->json, "one JSON object");
  command->callback(
      [options, action] { *action = [options] { return Plan(*options); }; });
}

}  // namespace tributary
