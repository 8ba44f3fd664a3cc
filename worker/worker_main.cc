// SPDX-License-Identifier: Apache-2.0
// tributary-worker: computes gradients on its share of the data.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/command_line/access_flags.h"
#include "common/command_line/command_line.h"
#include "common/command_line/page_access.h"
#include "common/command_line/parse_command_line.h"
#include "common/command_line/telemetry_options.h"
#include "common/host/end_on_signal.h"
#include "common/host/private_files.h"
#include "common/host/process_limits.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/identity/access.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/rank/client/message_delay.h"
#include "worker/train/check/check_data.h"
#include "worker/train/check/compare_data.h"
#include "worker/train/measure/run_measurement.h"
#include "worker/train/predict/run_prediction.h"
#include "worker/train/trainer/group_network.h"
#include "worker/train/trainer/run_worker.h"

namespace {

// The fewest open files that a job of one server and one worker needs.
constexpr uint64_t kFewestFiles = 16;

// Adds the options that `tributary plan` and `compare` pass to measure.
void AddMeasurementOptions(tributary::CommandLine& command,
                           tributary::MeasurementOptions* options) {
  command.AddOption(
      "--measure-compute", &options->job_path,
      "instead of working: time passes of this job's model, print\n"
      "them as JSON");
  command
      .AddOption("--measure-rows", &options->rows,
                 "batch sizes to time; none: tell the shape of the data")
      .Range(1, 1 << 20);
  command
      .AddOption("--set", &options->overrides,
                 "change a field of that job file")
      .TypeName("KEY=VALUE")
      .OnePerFlag();
  command.AddOption("--measure-links", &options->link,
                    "instead of working: measure the way to a worker that was\n"
                    "started with --serve-links, as HOST:PORT");
  command.AddOption("--serve-links", &options->serve_links,
                    "instead of working: be the far end, on HOST:PORT");
  command
      .AddOption("--serve-seconds", &options->serve_seconds,
                 "and end after so long; default: never")
      .Positive();
}

// Adds the options that `tributary predict` and `evaluate` pass.
void AddPredictionOptions(tributary::CommandLine& command,
                          tributary::PredictionOptions* options) {
  command.AddOption("--predict", &options->predict,
                    "instead of working: predict the rows of --input with the\n"
                    "model of this run directory");
  command.AddOption("--evaluate", &options->evaluate,
                    "instead of working: evaluate the model of this run\n"
                    "directory");
  command.AddOption("--input", &options->input, "a file of rows");
  command.AddOption("--labels", &options->labels, "a file of their labels");
  command
      .AddOption("--data", &options->data,
                 "without --input: test, validation or train")
      .OneOf({"test", "validation", "train"});
  command.AddOption("--weights", &options->weights, "instead of the run's");
  command.AddFlag("--last", &options->last,
                  "the run's weights of the last step");
  command.AddOption("--output", &options->output, "a file, instead of stdout");
  command.AddFlag("--json", &options->json, "write JSON");
  command.AddFlag("--top", &options->top, "write only the best class");
  command.AddFlag("--allow-unknown", &options->allow_unknown,
                  "accept categories that the training data lack");
  command
      .AddOption("--generate", &options->generate.tokens, "tokens to generate")
      .Range(1, 1'000'000);
  command
      .AddOption("--prompt", &options->generate.prompt, "the text to continue")
      .MayBeEmpty();
  command.AddOption("--seed", &options->generate.seed, "draws the tokens");
  command
      .AddOption("--temperature", &options->generate.temperature, "0: no draw")
      .Range(0.0, 1000.0);
}

// Refuses a job whose data do not fit its model: `tributary train` asks before
// it starts anything. The last line is the error, or an object with a `note`,
// if there is one, and the `data` (DataRecord), if they were read.
int CheckData(const std::string& path,
              const std::vector<std::string>& overrides) {
  std::string record;
  const absl::StatusOr<std::string> note =
      tributary::CheckDataOfFile(path, overrides, &record);
  if (note.ok()) {
    nlohmann::json found = nlohmann::json::object();
    if (!note->empty()) found["note"] = *note;
    if (!record.empty()) found["data"] = nlohmann::json::parse(record);
    printf("%s\n",
           found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
               .c_str());
    return 0;
  }
  printf("%s\n", std::string(note.status().message()).c_str());
  return tributary::kExitWrongCommandLine;
}

// Tells `tributary bisect` where the data of two jobs differ. The last line is
// the answer or the error.
int CompareData(const std::vector<std::string>& job_paths) {
  const auto difference =
      tributary::CompareDataOfFiles(job_paths.at(0), job_paths.at(1));
  if (difference.ok()) {
    printf("%s\n", difference->c_str());
    return 0;
  }
  printf("%s\n", std::string(difference.status().message()).c_str());
  return tributary::kExitWrongCommandLine;
}

void AddProbeOptions(tributary::CommandLine& command,
                     tributary::WorkerOptions::Probe* probe) {
  command.AddOption(
      "--probe", &probe->folder,
      "for tributary replay: write there what each rank computes\n"
      "in the steps --probe-first to --probe-last");
  command.AddOption("--probe-first", &probe->first_step, "from 1");
  command.AddOption("--probe-last", &probe->last_step, "the last of them");
}

struct TestOptions {
  int64_t delay_ms = 0;
  uint64_t delay_seed = 1;
};

void AddTestOptions(tributary::CommandLine& command, TestOptions* tests,
                    tributary::WorkerOptions* options) {
  command
      .AddOption("--delay-messages-ms", &tests->delay_ms,
                 "for tests: hold every message back by up to so much")
      .Range(0, 10'000);
  command.AddOption("--delay-seed", &tests->delay_seed,
                    "for tests: draws the delays");
  command
      .AddOption("--slow-down", &options->for_tests.slow_down,
                 "for tests: computing takes so many times as long")
      .Range(1.0, 1000.0);
}

absl::Status ReadAccess(const tributary::AccessOptions& access,
                        const tributary::TelemetryOptions& telemetry,
                        tributary::WorkerOptions* options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      options->access,
      tributary::Access::Read(access, tributary::PeerRole::kWorker));
  TRIBUTARY_ASSIGN_OR_RETURN(
      options->pages, tributary::ReadPageAccess(telemetry, options->access));
  return absl::OkStatus();
}

// Checks the address of a speed test's far end, which takes bytes from anyone.
absl::Status CheckServeLinks(const tributary::AccessOptions& access,
                             const std::string& listen) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const tributary::Access clear,
      tributary::Access::Read({.insecure = access.insecure,
                               .insecure_groups = access.insecure_groups},
                              tributary::PeerRole::kWorker));
  return clear.CheckListenInClear(listen);
}

// All options of the command line.
struct Given {
  tributary::WorkerOptions worker;
  double join_seconds = absl::ToDoubleSeconds(worker.join_timeout);
  tributary::TelemetryOptions telemetry{.log = {.role = "worker"}};
  tributary::AccessOptions access;
  TestOptions tests;
  // Set if the process does something else instead of training:
  tributary::MeasurementOptions measurement;
  tributary::PredictionOptions prediction;
  std::string check_data;
  std::vector<std::string> compare_data;

  bool works() const {
    return check_data.empty() && compare_data.empty() &&
           !measurement.wanted() && !prediction.wanted();
  }
};

void AddWorkerOptions(tributary::CommandLine& program, Given* given) {
  tributary::WorkerOptions& options = given->worker;
  const std::map<std::string, tributary::v1::Device> devices = {
      {"auto", tributary::v1::DEVICE_AUTO},
      {"cpu", tributary::v1::DEVICE_CPU},
      {"cuda", tributary::v1::DEVICE_CUDA}};
  program.AddOption("--coordinator", &options.coordinator,
                    "host:port of the coordinator");
  program.AddOption("--index", &options.index,
                    "this rank of the job, or none; default: any free one");
  program.AddChoice("--device", &options.device, devices,
                    "what to compute on; auto leaves it to the job");
  program.AddOption(
      "--local-rank", &options.local_rank,
      "which of this machine's CUDA devices to compute on, modulo\n"
      "their number; default: the rank of the job");
  program
      .AddOption("--join-timeout", &given->join_seconds,
                 "seconds to wait for the coordinator and for a free place")
      .ShowDefault()
      .Positive();
  tributary::AddListenerAccessFlags(program, &given->access);
  tributary::AddInsecureGroupsFlag(program, &given->access.insecure_groups);
  program
      .AddOption("--data-root", &options.roots.data,
                 "read data and initial weights below this folder alone; may\n"
                 "be repeated; default: wherever the job says")
      .TypeName("FOLDER")
      .OnePerFlag();
  tributary::AddCheckpointRootFlag(program, &options.roots.checkpoints);
  tributary::AddTelemetryOptions(program, &given->telemetry);
}

void AddOptionsInsteadOfWork(tributary::CommandLine& program, Given* given) {
  AddMeasurementOptions(program, &given->measurement);
  AddPredictionOptions(program, &given->prediction);
  AddTestOptions(program, &given->tests, &given->worker);
  program.AddOption("--check-data", &given->check_data,
                    "instead of working: tell whether this job's data fit its\n"
                    "model");
  program
      .AddOption("--compare-data", &given->compare_data,
                 "instead of working: tell the first sample in which the data\n"
                 "of these two jobs differ")
      .Count(2);
  AddProbeOptions(program, &given->worker.probe);
}

// Runs the worker, or the measurement that the command line asks for.
absl::Status Work(Given given) {
  tributary::WorkerOptions& options = given.worker;
  const tributary::MeasurementOptions& measurement = given.measurement;
  tributary::KeepGroupsInside(options.coordinator);
  tributary::PrepareForTransfers();
  tributary::PrepareProcessLimits();
  options.join_timeout = absl::Seconds(given.join_seconds);
  options.for_tests.delay_micros =
      tributary::MakeMessageDelay(given.tests.delay_ms, given.tests.delay_seed);
  options.metrics_listen = given.telemetry.metrics_listen;
  TRIBUTARY_RETURN_IF_ERROR(tributary::SetUpLog(given.telemetry.log));
  TRIBUTARY_RETURN_IF_ERROR(tributary::CheckProcessLimits(kFewestFiles));
  if (!measurement.serve_links.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(
        CheckServeLinks(given.access, measurement.serve_links));
  }
  if (measurement.wanted()) return tributary::RunMeasurement(measurement);
  TRIBUTARY_RETURN_IF_ERROR(
      ReadAccess(given.access, given.telemetry, &options));
  return tributary::RunWorker(options);
}

}  // namespace

int main(int argc, char** argv) {
  tributary::SetDeviceEnvironment();
  tributary::EndOnSignal();
  tributary::KeepFilesPrivate();
  tributary::CommandLine program(
      "tributary-worker: computes gradients on its share of the data and\n"
      "pushes them to the servers. Job and rank it gets from the coordinator;\n"
      "the data lies where the job file says, on this machine.\n\n"
      "  tributary-worker --coordinator 10.0.0.1:7070\n",
      "tributary-worker", absl::StrCat("tributary ", tributary::kVersion));
  Given given;
  AddWorkerOptions(program, &given);
  AddOptionsInsteadOfWork(program, &given);
  program.SetFinalCheck([&given] {
    return given.works() && given.worker.coordinator.empty()
               ? "--coordinator is required"
               : "";
  });
  if (const auto ended = tributary::ParseCommandLine(program, argc, argv)) {
    return *ended;
  }
  if (!given.check_data.empty()) {
    return CheckData(given.check_data, given.measurement.overrides);
  }
  if (!given.compare_data.empty()) return CompareData(given.compare_data);
  if (given.prediction.wanted()) {
    return tributary::RunPrediction(given.prediction);
  }
  const absl::Status status = Work(std::move(given));
  if (status.ok()) return 0;
  spdlog::error("{}", std::string(status.message()));
  return 1;
}
