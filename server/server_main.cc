// SPDX-License-Identifier: Apache-2.0
// tributary-server: holds a shard of a job's parameters.
#include <CLI/CLI.hpp>
#include <string>

#include "common/command_line/access_flags.h"
#include "common/command_line/page_access.h"
#include "common/command_line/parse_command_line.h"
#include "common/command_line/telemetry_options.h"
#include "common/host/end_on_signal.h"
#include "common/host/private_files.h"
#include "common/host/process_limits.h"
#include "common/status/status_macros.h"
#include "common/wire/access.h"
#include "common/wire/channel.h"
#include "server/service/run_server.h"
#include "spdlog/spdlog.h"

namespace {

// The smallest number of open files that a job of one server and one worker
// needs.
constexpr uint64_t kFewestFiles = 16;

absl::Status ReadAccess(const tributary::AccessOptions& access,
                        const tributary::TelemetryOptions& telemetry,
                        tributary::ServerOptions* options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      options->access,
      tributary::Access::Read(access, tributary::PeerRole::kServer));
  TRIBUTARY_RETURN_IF_ERROR(options->access.CheckListen(options->listen));
  TRIBUTARY_ASSIGN_OR_RETURN(
      options->pages, tributary::ReadPageAccess(telemetry, options->access));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  tributary::EndOnSignal();
  tributary::KeepFilesPrivate();
  tributary::ServerOptions options;
  tributary::TelemetryOptions telemetry{.log = {.role = "server"}};
  double join_seconds = absl::ToDoubleSeconds(options.join_timeout);
  CLI::App app(
      "tributary-server: holds a shard of a job's parameters.\n"
      "Workers push gradients to it and get new weights back. Which shard of\n"
      "which job it gets from the coordinator.\n\n"
      "  tributary-server --coordinator 10.0.0.1:7070 --listen 0.0.0.0:7071\n",
      "tributary-server");
  app.set_version_flag("--version", "tributary " TRIBUTARY_VERSION);
  app.add_option("--coordinator", options.coordinator,
                 "host:port of the coordinator")
      ->required();
  app.add_option("--listen", options.listen,
                 "address to listen on; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--advertise", options.advertise,
                 "host:port under which workers reach this server; default: "
                 "the host of --listen, or this machine's name");
  app.add_option("--index", options.index,
                 "this shard of the job, or none; default: any free one");
  app.add_option("--shared-memory", options.shared_memory_directory,
                 "directory that workers in other containers of this machine "
                 "see under the same name, to share memory with them; default: "
                 "only with workers in the same network namespace")
      ->check(CLI::ExistingDirectory);
  app.add_option("--join-timeout", join_seconds,
                 "seconds to wait for the coordinator and for a free place")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  tributary::AccessOptions access;
  tributary::AddListenerAccessFlags(app, &access);
  tributary::AddCheckpointRootFlag(app, &options.checkpoint_roots);
  tributary::AddReflectionFlag(app, &options.reflection);
  tributary::AddTelemetryOptions(app, &telemetry);
  if (const auto ended = tributary::ParseCommandLine(app, argc, argv)) {
    return *ended;
  }

  tributary::PrepareForTransfers();
  tributary::RaiseFileLimit();
  options.join_timeout = absl::Seconds(join_seconds);
  options.metrics_listen = telemetry.metrics_listen;
  absl::Status status = tributary::SetUpLog(telemetry.log);
  if (status.ok()) status = tributary::CheckProcessLimits(kFewestFiles);
  if (status.ok()) status = ReadAccess(access, telemetry, &options);
  if (status.ok()) status = tributary::RunServer(options);
  if (status.ok()) return 0;
  spdlog::error("{}", std::string(status.message()));
  return 1;
}
