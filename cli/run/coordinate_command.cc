#include "cli/run/coordinate_command.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/run/job_run.h"
#include "cli/terminal/console.h"
#include "cli/terminal/interrupts.h"
#include "common/host/process_limits.h"
#include "common/job/job_file.h"
#include "common/telemetry/flags.h"

namespace tributary {
namespace {

constexpr absl::Duration kFarewell = absl::Seconds(10);

struct CoordinateOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  std::string run_dir;
  std::string listen = "0.0.0.0:7070";
  double start_seconds = 600;
  TelemetryOptions telemetry;
};

int Coordinate(const CoordinateOptions& options) {
  const absl::StatusOr<v1::JobSpec> job =
      ReadJobFile(options.job_path, options.overrides);
  if (!job.ok()) {
    PrintError(job.status().message());
    return kExitRefused;
  }
  if (const absl::Status limits = CheckProcessLimits(FilesOf(job->cluster()));
      !limits.ok()) {
    PrintError(limits.message());
    return kExitRefused;
  }
  Interrupts::Install();
  LogOptions log = options.telemetry.log;
  // On a terminal, the progress display takes the log's place.
  log.standard_error = isatty(STDERR_FILENO) != 1;
  const auto started =
      JobRun::Start({.job = *job,
                     .run_dir = options.run_dir,
                     .listen = options.listen,
                     .start_timeout = absl::Seconds(options.start_seconds),
                     .metrics_listen = options.telemetry.metrics_listen,
                     .log = log,
                     .take_over = true});
  if (!started.ok()) {
    PrintError(started.status().message());
    return kExitRefused;
  }
  JobRun& run = **started;
  run.console().Note(
      absl::StrCat(job->name(), ": coordinator ", run.coordinator().address(),
                   " waits for servers: ", job->cluster().servers(),
                   ", workers: ", job->cluster().workers()));
  run.Follow([] { return std::string(); });
  run.coordinator().control().WaitUntilEveryoneKnowsEnd(kFarewell);
  return run.Conclude();
}

}  // namespace

void AddCoordinateOptions(CLI::App& app, Action* action) {
  auto options = std::make_shared<CoordinateOptions>();
  app.add_option("--job", options->job_path, "the job file (YAML)")->required();
  app.add_option("--listen", options->listen, "HOST:PORT to listen on")
      ->capture_default_str();
  app.add_option("--run-dir", options->run_dir,
                 "new or empty folder for what the run leaves behind;\n"
                 "default: runs/NAME-DATE-TIME");
  AddOverrides(app, &options->overrides);
  app.add_option("--start-timeout", options->start_seconds,
                 "seconds that servers and workers may take to come")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  AddTelemetryOptions(app, &options->telemetry);
  app.callback([options, action] {
    *action = [options] { return Coordinate(*options); };
  });
}

}  // namespace tributary
