// SPDX-License-Identifier: Apache-2.0
// tributary-server: holds a shard of a job's parameters.
#include <string>

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
#include "server/service/run_server.h"
#include "spdlog/spdlog.h"

namespace {

// The smallest number of open files that a job of one server and one worker
// needs.
constexpr uint64_t kFewestFiles = 16;

void AddServerFlags(tributary::CommandLine& program,
                    tributary::ServerOptions* options) {
  program
      .AddOption("--coordinator", &options->coordinator,
                 "host:port of the coordinator")
      .Required();
  program
      .AddOption("--listen", &options->listen,
                 "address to listen on; port 0 takes a free one")
      .ShowDefault();
  program.AddOption("--advertise", &options->advertise,
                    "host:port under which workers reach this server; default: "
                    "the host of --listen, or this machine's name");
  program.AddOption("--index", &options->index,
                    "this shard of the job, or none; default: any free one");
  program
      .AddOption("--shared-memory", &options->shared_memory_directory,
                 "directory that workers in other containers of this machine "
                 "see under the same name, to share memory with them; default: "
                 "only with workers in the same network namespace")
      .ExistingFolder();
  program.AddFlag("--shared-memory-any-user", &options->shared_memory_any_user,
                  "share memory with workers of every user of this machine, "
                  "for containers with different users; tickets are still "
                  "checked");
}

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
  tributary::CommandLine program(
      "tributary-server: holds a shard of a job's parameters.\n"
      "Workers push gradients to it and get new weights back. Which shard of\n"
      "which job it gets from the coordinator.\n\n"
      "  tributary-server --coordinator 10.0.0.1:7070 --listen 0.0.0.0:7071\n",
      "tributary-server", absl::StrCat("tributary ", tributary::kVersion));
  AddServerFlags(program, &options);
  program
      .AddOption("--join-timeout", &join_seconds,
                 "seconds to wait for the coordinator and for a free place")
      .ShowDefault()
      .Positive();
  tributary::AccessOptions access;
  tributary::AddListenerAccessFlags(program, &access);
  tributary::AddCheckpointRootFlag(program, &options.checkpoint_roots);
  tributary::AddReflectionFlag(program, &options.reflection);
  tributary::AddTelemetryOptions(program, &telemetry);
  if (const auto ended = tributary::ParseCommandLine(program, argc, argv)) {
    return *ended;
  }

  tributary::PrepareForTransfers();
  tributary::PrepareProcessLimits();
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
