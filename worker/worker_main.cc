// tributary-worker: computes gradients on its share of the data.
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "common/host/end_on_signal.h"
#include "common/host/process_limits.h"
#include "common/telemetry/flags.h"
#include "common/wire/channel.h"
#include "kernels/device.h"
#include "spdlog/spdlog.h"
#include "worker/client/message_delay.h"
#include "worker/measure/run_measurement.h"
#include "worker/predict/run_prediction.h"
#include "worker/trainer/run_worker.h"

namespace {

// The least that a job of one server and one worker needs.
constexpr uint64_t kFewestFiles = 16;

// What `tributary plan` and `tributary compare` ask this machine.
void AddMeasurementOptions(CLI::App& app,
                           tributary::MeasurementOptions* options) {
  app.add_option("--measure-compute", options->job_path,
                 "instead of working: time passes of this job's model, print\n"
                 "them as JSON");
  app.add_option("--measure-rows", options->rows,
                 "batch sizes to time; none: tell the shape of the data")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--set", options->overrides, "change a field of that job file")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--measure-links", options->link,
                 "instead of working: measure the way to a worker that was\n"
                 "started with --serve-links, as HOST:PORT");
  app.add_option("--serve-links", options->serve_links,
                 "instead of working: be the far end, on HOST:PORT");
  app.add_option("--serve-seconds", options->serve_seconds,
                 "and end after so long; default: never")
      ->check(CLI::PositiveNumber);
}

// What `tributary predict` and `tributary evaluate` ask.
void AddPredictionOptions(CLI::App& app,
                          tributary::PredictionOptions* options) {
  app.add_option("--predict", options->predict,
                 "instead of working: predict the rows of --input with the\n"
                 "model of this run directory");
  app.add_option("--evaluate", options->evaluate,
                 "instead of working: evaluate the model of this run\n"
                 "directory");
  app.add_option("--input", options->input, "a file of rows");
  app.add_option("--labels", options->labels, "a file of their labels");
  app.add_option("--data", options->data, "without --input: test or train")
      ->check(CLI::IsMember({"test", "train"}));
  app.add_option("--weights", options->weights, "instead of the run's");
  app.add_option("--output", options->output, "a file, instead of stdout");
  app.add_flag("--json", options->json, "write JSON");
  app.add_flag("--top", options->top, "write only the best class");
  app.add_flag("--allow-unknown", options->allow_unknown,
               "accept categories that the training data lack");
  app.add_option("--generate", options->generate, "tokens to generate")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--prompt", options->prompt, "the text to continue");
  app.add_option("--seed", options->seed, "draws the tokens");
  app.add_option("--temperature", options->temperature, "0: no draw")
      ->check(CLI::Range(0.0, 1000.0));
}

struct TestOptions {
  int64_t delay_ms = 0;
  uint64_t delay_seed = 1;
};

void AddTestOptions(CLI::App& app, TestOptions* tests,
                    tributary::WorkerOptions* options) {
  app.add_option("--delay-messages-ms", tests->delay_ms,
                 "for tests: hold every message back by up to so much")
      ->check(CLI::Range(0, 10'000));
  app.add_option("--delay-seed", tests->delay_seed,
                 "for tests: draws the delays");
  app.add_option("--slow-down", options->slow_down,
                 "for tests: computing takes so many times as long")
      ->check(CLI::Range(1.0, 1000.0));
}

}  // namespace

int main(int argc, char** argv) {
  tributary::SetDeviceEnvironment();
  tributary::EndOnSignal();
  tributary::WorkerOptions options;
  tributary::TelemetryOptions telemetry{.log = {.role = "worker"}};
  double join_seconds = 60;
  const std::map<std::string, tributary::v1::Device> devices = {
      {"auto", tributary::v1::DEVICE_AUTO},
      {"cpu", tributary::v1::DEVICE_CPU},
      {"cuda", tributary::v1::DEVICE_CUDA}};
  CLI::App app(
      "tributary-worker: computes gradients on its share of the data and\n"
      "pushes them to the servers. Job and rank it gets from the coordinator;\n"
      "the data lies where the job file says, on this machine.\n\n"
      "  tributary-worker --coordinator 10.0.0.1:7070\n");
  app.add_option("--coordinator", options.coordinator,
                 "host:port of the coordinator");
  app.add_option("--index", options.index,
                 "this rank of the job, or none; default: any free one");
  app.add_option("--device", options.device,
                 "auto, cpu or cuda; auto leaves it to the job")
      ->transform(CLI::CheckedTransformer(devices, CLI::ignore_case));
  app.add_option("--local-rank", options.local_rank,
                 "which of this machine's CUDA devices to compute on, modulo\n"
                 "their number; default: the rank of the job");
  app.add_option("--join-timeout", join_seconds,
                 "seconds to wait for the coordinator and for a free place")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  tributary::AddTelemetryOptions(app, &telemetry);
  tributary::MeasurementOptions measurement;
  AddMeasurementOptions(app, &measurement);
  tributary::PredictionOptions prediction;
  AddPredictionOptions(app, &prediction);
  TestOptions tests;
  AddTestOptions(app, &tests, &options);
  app.final_callback([&] {
    if (options.coordinator.empty() && !measurement.wanted() &&
        !prediction.wanted()) {
      throw CLI::RequiredError("--coordinator");
    }
  });
  CLI11_PARSE(app, argc, argv);
  if (prediction.wanted()) return tributary::RunPrediction(prediction);

  tributary::PrepareForTransfers();
  tributary::RaiseFileLimit();
  options.join_timeout = absl::Seconds(join_seconds);
  options.delay_micros =
      tributary::MakeMessageDelay(tests.delay_ms, tests.delay_seed);
  options.metrics_listen = telemetry.metrics_listen;
  absl::Status status = tributary::SetUpLog(telemetry.log);
  if (status.ok()) status = tributary::CheckProcessLimits(kFewestFiles);
  if (status.ok()) {
    status = measurement.wanted() ? tributary::RunMeasurement(measurement)
                                  : tributary::RunWorker(options);
  }
  if (status.ok()) return 0;
  spdlog::error("{}", std::string(status.message()));
  return 1;
}
