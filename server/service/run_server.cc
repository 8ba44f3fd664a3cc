#include "server/service/run_server.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/address.h"
#include "common/control/member.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "kernels/ops.h"
#include "server/service/parameter_server.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// How often a server that serves tells the coordinator what it waits for.
constexpr absl::Duration kReportInterval = absl::Milliseconds(500);

absl::StatusOr<ParameterServer::Training> MakeTraining(const v1::JobSpec& job,
                                                       const v1::Plan& plan,
                                                       int shard, Ops* ops) {
  ParameterServer::Training training;
  training.shard = shard;
  training.optimizer = OptimizerOptionsOf(job.training().optimizer());
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateSchedule::Create(job.training().learning_rate_schedule(),
                                   training.optimizer.learning_rate,
                                   plan.total_steps()));
  training.learning_rate = [schedule = std::move(schedule)](int64_t step) {
    return schedule.At(step);
  };
  training.clip_norm = job.training().clip_norm();
  training.policy = std::make_unique<BulkSynchronous>();
  training.ops = ops;
  return training;
}

absl::Status ServeUntilEnd(Member& member, ParameterServer& server, Ops* ops,
                           const ServerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::Plan plan,
                             member.GetPlan(options.join_timeout));
  TRIBUTARY_ASSIGN_OR_RETURN(
      ParameterServer::Training training,
      MakeTraining(member.job(), plan, static_cast<int>(member.index()), ops));
  TRIBUTARY_RETURN_IF_ERROR(server.Serve(plan, std::move(training)));
  spdlog::info("serving shard {} of {}", member.index(), plan.servers_size());
  for (;;) {
    const absl::Status end = member.WaitForEnd(kReportInterval);
    if (!absl::IsDeadlineExceeded(end)) return end;
    const v1::ServerStatusResponse status = server.GetStatus();
    member.SetBytes(status.bytes_sent(), status.bytes_received());
    const auto& ranks = status.waiting_for_ranks();
    member.SetWaitingFor(
        ranks.empty() ? ""
                      : absl::StrCat("step ", status.min_version() + 1,
                                     ": rank ", absl::StrJoin(ranks, ", ")),
        {ranks.begin(), ranks.end()});
  }
}

}  // namespace

absl::Status RunServer(const ServerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Exporter> exporter,
      Exporter::Start({.listen = options.metrics_listen, .role = "server"}));
  Exporter::Handle joining = exporter->AddHealthCheck([&options] {
    return Health{false, absl::StrCat("waits for a place at coordinator ",
                                      options.coordinator)};
  });
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterServer> server,
      ParameterServer::Start({.listen = options.listen}));
  const std::string address =
      options.advertise.empty()
          ? ReachableAddress(options.listen, server->port())
          : options.advertise;
  spdlog::info("listening on port {}, reached as {}", server->port(), address);
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<Member> member,
      Member::Join({.coordinator = options.coordinator,
                    .role = v1::ROLE_SERVER,
                    .address = address,
                    .metrics_address = exporter->address(),
                    .wanted_index = options.index,
                    .join_timeout = options.join_timeout}));
  SetLogIndex(member->index());
  member->SetDevice(ops->device_name());
  joining = Exporter::Handle();
  const Exporter::Handle health = exporter->AddHealthCheck(
      [&member] { return HealthOf(member->Contact(), member->waiting_for()); });
  const Exporter::Handle metrics = exporter->AddSource(
      [&server](MetricsWriter* writer) { server->WriteMetrics(writer); });
  const absl::Status status =
      ServeUntilEnd(*member, *server, ops.get(), options);
  if (!status.ok() && member->end().ok()) member->Fail(status);
  server->Shutdown();
  return status;
}

}  // namespace tributary
