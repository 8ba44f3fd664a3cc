#include "server/service/run_server.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/checkpointer.h"
#include "common/checkpoint/planned_checkpoint.h"
#include "common/checkpoint/restore.h"
#include "common/host/address.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/member/member.h"
#include "common/member/report_checkpoint.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "kernels/ops.h"
#include "server/service/parameter_server.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// How often a server reports to the coordinator which ranks it waits for.
constexpr absl::Duration kReportInterval = absl::Milliseconds(500);

std::unique_ptr<SyncPolicy> MakePolicy(const v1::JobSpec& job) {
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  const int64_t barrier = job.checkpoint().every_steps();
  switch (sync.kind_case()) {
    case v1::SyncSpec::kSsp:
      return std::make_unique<StaleSynchronous>(sync.ssp().staleness(),
                                                barrier);
    case v1::SyncSpec::kAsync:
      return std::make_unique<Asynchronous>(barrier);
    default:
      return std::make_unique<BulkSynchronous>(sync.bsp().backup_workers());
  }
}

NonFiniteAction NonFiniteActionOf(v1::NonFinite nonfinite) {
  switch (nonfinite) {
    case v1::NON_FINITE_REJECT:
      return NonFiniteAction::kReject;
    case v1::NON_FINITE_SKIP:
      return NonFiniteAction::kSkip;
    default:
      return NonFiniteAction::kFail;
  }
}

// A server's work for one plan at a time: its training options and checkpoints.
class Service {
 public:
  Service(Member* member, Ops* ops) : member_(member), ops_(ops) {}
  ~Service() {
    if (checkpointer_) checkpointer_->Finish();
  }

  absl::Status Start(const v1::Plan& plan, ParameterServer& server) {
    TRIBUTARY_ASSIGN_OR_RETURN(ParameterServer::Training training,
                               MakeTraining(plan));
    TRIBUTARY_RETURN_IF_ERROR(PrepareCheckpoints(plan, &training.shard));
    TRIBUTARY_RETURN_IF_ERROR(PrepareRestore(plan, &training));
    TRIBUTARY_RETURN_IF_ERROR(server.Serve(plan, std::move(training)));
    checkpoint_.reset();
    return absl::OkStatus();
  }

  // Writes the metrics that the shard itself cannot know.
  void WriteMetrics(MetricsWriter* writer) const {
    if (job().checkpoint().every_steps() == 0) return;
    writer->Histogram("tributary_server_checkpoint_pause_seconds",
                      "Seconds that updates stood still for a checkpoint.",
                      pause_seconds_.Snapshot(),
                      {{"shard", absl::StrCat(member_->index())}});
  }

  // The reason why the job cannot continue; empty: it can.
  std::string fatal() const {
    absl::MutexLock lock(&mu_);
    return fatal_;
  }

 private:
  const v1::JobSpec& job() const { return member_->job(); }

  absl::StatusOr<ParameterServer::Training> MakeTraining(const v1::Plan& plan) {
    const v1::SyncSpec& sync = job().strategy().parameter_server().sync();
    ParameterServer::Training training;
    ParameterShard::Options& shard = training.shard;
    shard.shard = static_cast<int>(member_->index());
    shard.optimizer = ServerOptimizerOptionsOf(job());
    TRIBUTARY_ASSIGN_OR_RETURN(
        LearningRateSchedule schedule,
        LearningRateSchedule::Create(
            sync.has_local_sgd() ? v1::ScheduleSpec()
                                 : job().training().learning_rate_schedule(),
            shard.optimizer.learning_rate, plan.total_steps()));
    shard.learning_rate = [schedule = std::move(schedule)](int64_t step) {
      return schedule.At(step);
    };
    training.steps_an_update = StepsAnUpdate(job());
    if (!sync.has_local_sgd()) shard.clip_norm = job().training().clip_norm();
    shard.policy = MakePolicy(job());
    shard.ops = ops_;
    shard.scale_by_staleness =
        sync.ssp().scale_by_staleness() || sync.async().scale_by_staleness();
    shard.keep_previous =
        shard.policy->gathers() && !shard.policy->drops_late() &&
        job().cluster().on_worker_loss() != v1::WORKER_LOSS_FAIL;
    shard.nonfinite = NonFiniteActionOf(job().training().nonfinite());
    shard.on_fatal = [this](const std::string& why) {
      absl::MutexLock lock(&mu_);
      if (fatal_.empty()) fatal_ = why;
    };
    return training;
  }

  absl::Status PrepareCheckpoints(const v1::Plan& plan,
                                  ParameterShard::Options* shard) {
    if (checkpointer_) checkpointer_->Finish();
    checkpointer_.reset();
    const int64_t every = job().checkpoint().every_steps();
    if (every == 0 || plan.checkpoint_directory().empty()) {
      return absl::OkStatus();
    }
    TRIBUTARY_ASSIGN_OR_RETURN(const PartitionPlan cut,
                               MakePartitionPlan(plan));
    const size_t blocks = cut.blocks(shard->shard).size();
    if (blocks == 0) return absl::OkStatus();
    Checkpointer::Options options;
    options.directory = plan.checkpoint_directory();
    options.series = SeriesOf(plan, cut, shard->shard,
                              Optimizer(shard->optimizer).state_names());
    options.num_blocks = blocks;
    options.on_written =
        [this, names = options.series.state_names,
         epoch = plan.epoch()](const Checkpointer::Written& written) {
          Report(written, names, epoch);
        };
    checkpointer_ = std::make_shared<Checkpointer>(std::move(options));
    const int64_t steps = StepsAnUpdate(job());
    shard->checkpoint_every_steps = every / steps;
    // The last update of a job may cover fewer steps.
    shard->on_checkpoint = [keep = checkpointer_, steps,
                            last = plan.total_steps()](BlockCut cut) {
      cut.steps = std::min(cut.steps * steps, last);
      keep->Take(cut);
    };
    return absl::OkStatus();
  }

  void Report(const Checkpointer::Written& written,
              const std::vector<std::string>& state_names,
              uint64_t plan_epoch) {
    pause_seconds_.Observe(written.pause_seconds);
    ReportCheckpoint(written, state_names, plan_epoch, member_);
  }

  absl::Status PrepareRestore(const v1::Plan& plan,
                              ParameterServer::Training* training) {
    if (plan.restore_from().empty()) return absl::OkStatus();
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::shared_ptr<const CheckpointReader> reader,
        OpenToRestore(plan, training->shard.shard, plan.servers_size()));
    TRIBUTARY_ASSIGN_OR_RETURN(const PartitionPlan cut,
                               MakePartitionPlan(plan));
    TRIBUTARY_ASSIGN_OR_RETURN(
        checkpoint_, PlannedCheckpoint::Create(
                         reader, cut.parameters(),
                         Optimizer(training->shard.optimizer).state_names()));
    training->load_block = [checkpoint = checkpoint_.get()](
                               const Block& block, float* weights,
                               const std::vector<float*>& state) {
      return Unreadable(
          checkpoint->ReadBlock(block, weights, absl::MakeConstSpan(state)));
    };
    training->on_loaded = [reader] {
      return Unreadable(reader->CompareChecksums());
    };
    spdlog::info("going on after step {} of {}", plan.start_step(),
                 plan.restore_from());
    return absl::OkStatus();
  }

  Member* const member_;
  Ops* const ops_;
  Histogram pause_seconds_{Histogram::SecondsBounds()};
  std::unique_ptr<PlannedCheckpoint> checkpoint_;  // while blocks are loaded
  std::shared_ptr<Checkpointer> checkpointer_;

  mutable absl::Mutex mu_;
  std::string fatal_ ABSL_GUARDED_BY(mu_);
};

void SetFigures(const v1::ServerStatusResponse& status,
                v1::HeartbeatRequest* heartbeat) {
  heartbeat->set_bytes_sent(status.bytes_sent());
  heartbeat->set_bytes_received(status.bytes_received());
  heartbeat->set_optimizer_seconds(status.optimizer_seconds());
}

// Serves until the job or the plan ends. OK: the job is done. DeadlineExceeded:
// there is a newer plan.
absl::Status ServePlan(Member& member, ParameterServer& server,
                       const Service& service, const v1::Plan& plan) {
  for (;;) {
    const absl::Status change =
        member.WaitForPlanAfter(plan.epoch(), kReportInterval);
    if (absl::IsCancelled(change)) return absl::OkStatus();
    if (change.ok()) return absl::DeadlineExceededError("a newer plan");
    if (!absl::IsDeadlineExceeded(change)) return change;
    if (const std::string why = service.fatal(); !why.empty()) {
      return absl::InternalError(why);
    }
    const v1::ServerStatusResponse status = server.GetStatus();
    const auto& ranks = status.waiting_for_ranks();
    member.SetWaitingFor(
        ranks.empty() ? ""
                      : absl::StrCat("step ", status.min_version() + 1,
                                     ": rank ", absl::StrJoin(ranks, ", ")),
        {ranks.begin(), ranks.end()});
  }
}

absl::Status ServeUntilEnd(Member& member, ParameterServer& server,
                           Service& service) {
  uint64_t epoch = 0;
  for (;;) {
    TRIBUTARY_ASSIGN_OR_RETURN(const v1::Plan plan, member.GetPlan(epoch + 1));
    epoch = plan.epoch();
    if (absl::Status start = service.Start(plan, server); !start.ok()) {
      if (IsUnreadable(start)) start = ReportUnreadable(start, plan, &member);
      if (start.ok()) continue;
      return absl::IsCancelled(start) ? absl::OkStatus() : start;
    }
    member.StartAt(epoch, plan.start_step());
    spdlog::info("serving shard {} of {}, plan epoch {}", member.index(),
                 plan.servers_size(), epoch);
    const absl::Status end = ServePlan(member, server, service, plan);
    const v1::ServerStatusResponse seen = server.GetStatus();
    spdlog::info("weights were read {} times, at most {} steps stale",
                 std::accumulate(seen.staleness().begin(),
                                 seen.staleness().end(), uint64_t{0}),
                 seen.max_staleness());
    if (!absl::IsDeadlineExceeded(end)) return end;
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
  TRIBUTARY_FAILPOINT("server-started");
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
                    .join_timeout = options.join_timeout,
                    .bring_up_to_date = [server = server.get()](
                                            v1::HeartbeatRequest* heartbeat) {
                      SetFigures(server->GetStatus(), heartbeat);
                    }}));
  SetLogIndex(member->index());
  member->SetDevice(ops->device_name());
  joining = Exporter::Handle();
  const Exporter::Handle health = exporter->AddHealthCheck(
      [&member] { return HealthOf(member->Contact(), member->waiting_for()); });
  Service service(member.get(), ops.get());
  const Exporter::Handle metrics =
      exporter->AddSource([&](MetricsWriter* writer) {
        server->WriteMetrics(writer);
        service.WriteMetrics(writer);
      });
  const absl::Status status = ServeUntilEnd(*member, *server, service);
  if (!status.ok() && member->end().ok()) member->Fail(status);
  server->Shutdown();  // before the objects that its shard calls
  return status;
}

}  // namespace tributary
