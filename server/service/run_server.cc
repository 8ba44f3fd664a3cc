// SPDX-License-Identifier: Apache-2.0
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
#include "common/host/memory/available_memory.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "common/member/leave_on_signal.h"
#include "common/member/member.h"
#include "common/member/report_checkpoint.h"
#include "common/plan/plan_codec.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/telemetry/exporter.h"
#include "common/telemetry/log.h"
#include "kernels/ops.h"
#include "server/service/make_training.h"
#include "server/service/parameter_server.h"
#include "server/service/server_driver.h"
#include "server/service/shard_memory.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

void SetFigures(const v1::ServerStatusResponse& status,
                v1::HeartbeatRequest* heartbeat) {
  heartbeat->set_bytes_sent(status.bytes_sent());
  heartbeat->set_bytes_received(status.bytes_received());
  heartbeat->set_optimizer_seconds(status.optimizer_seconds());
}

// Serves one plan after another, with their checkpoints.
class Service final : public DrivenServer {
 public:
  Service(Member* member, ParameterServer* server, Ops* ops)
      : member_(member), server_(*server), ops_(ops) {}
  ~Service() override {
    if (checkpointer_) checkpointer_->Finish();
  }

  absl::Status Start(const v1::Plan& plan) override {
    TRIBUTARY_ASSIGN_OR_RETURN(PartitionPlan partition,
                               MakePartitionPlan(plan));
    ShardSetup setup;
    setup.shard = static_cast<int>(member_->index());
    TRIBUTARY_ASSIGN_OR_RETURN(DataCourse course,
                               CourseFromProto(plan.course()));
    TRIBUTARY_ASSIGN_OR_RETURN(
        setup.training,
        MakeTraining(job(), plan.total_steps(), std::move(course)));
    setup.ops = ops_;
    setup.trace = member_->trace();
    setup.shares_memory = StrategyOf(job()).transport != Transport::kGrpc;
    setup.on_fatal = [this](const absl::Status& why) {
      absl::MutexLock lock(&mu_);
      fatal_.Update(why);
    };
    if (checkpointer_) checkpointer_->Finish();
    checkpointer_.reset();
    ParameterServer::Restore restore;
    // A server without blocks neither writes nor reads checkpoints. No step
    // waits for such a server, so the checkpoint may be gone when it gets here.
    if (const size_t blocks = partition.blocks(setup.shard).size();
        blocks > 0) {
      ShardFileSeries series =
          SeriesOf(plan, partition, setup.shard, ServerStatesOf(job()));
      series.digests = !member_->checkpoint_key().empty();
      PrepareCheckpoints(plan, series, blocks, &setup);
      TRIBUTARY_ASSIGN_OR_RETURN(restore, MakeRestore(plan, series));
    }
    // Later plans take the memory that this one gives back.
    if (!std::exchange(has_memory_, true)) {
      TRIBUTARY_RETURN_IF_ERROR(
          CheckClaim(ClaimOf(setup.shard, partition, setup.training),
                     ReadAvailableMemory()));
    }
    return server_.Serve(plan, std::move(partition), std::move(setup), restore);
  }

  // Writes the metrics that the shard itself cannot know.
  void WriteMetrics(MetricsWriter* writer) const {
    const v1::CheckpointSpec& wanted = job().checkpoint();
    if (wanted.every_steps() == 0 && !wanted.at_end()) return;
    writer->Histogram("tributary_server_checkpoint_pause_seconds",
                      "Seconds that updates stood still for a checkpoint.",
                      pause_seconds_.Snapshot(),
                      {{"shard", absl::StrCat(member_->index())}});
  }

  absl::Status Fatal() const override {
    absl::MutexLock lock(&mu_);
    return fatal_;
  }

  absl::Status CutAll(int64_t step, bool best) override {
    TRIBUTARY_RETURN_IF_ERROR(server_.CutAll(step));
    if (best && checkpointer_) checkpointer_->SetBest(step);
    return absl::OkStatus();
  }

  void ShowWait(const v1::Plan& plan) override {
    const v1::ServerStatusResponse status = server_.GetStatus();
    const StepCount count = StepCountOf(job());
    const auto& ranks = status.waiting_for_ranks();
    const int64_t next =
        std::min(count.StepsIn(status.min_version()) + count.steps_an_update,
                 plan.total_steps());
    if (ranks.empty()) return member_->display().SetWaitingFor({});
    member_->display().SetWaitingFor(WaitForRanks(
        absl::StrCat("step ", next, ": rank ", absl::StrJoin(ranks, ", ")),
        {ranks.begin(), ranks.end()}, next));
  }

  void Served() override {
    const v1::ServerStatusResponse seen = server_.GetStatus();
    spdlog::info("weights were read {} times, at most {} steps stale",
                 std::accumulate(seen.staleness().begin(),
                                 seen.staleness().end(), uint64_t{0}),
                 seen.max_staleness());
  }

 private:
  const v1::JobSpec& job() const { return member_->job(); }

  void PrepareCheckpoints(const v1::Plan& plan, const ShardFileSeries& series,
                          size_t blocks, ShardSetup* setup) {
    if (plan.checkpoint_directory().empty()) {
      setup->training.checkpoint_every_steps = 0;
      return;
    }
    Checkpointer::Options options;
    options.directory = plan.checkpoint_directory();
    options.series = series;
    options.num_blocks = blocks;
    options.on_written =
        [this, names = series.state_names,
         epoch = plan.epoch()](const Checkpointer::Written& written) {
          pause_seconds_.Observe(written.pause_seconds);
          ReportCheckpoint(written, names, epoch, member_);
        };
    checkpointer_ = std::make_shared<Checkpointer>(std::move(options));
    setup->on_checkpoint = [keep = checkpointer_](const BlockCut& cut) {
      keep->Take(cut);
    };
  }

  absl::StatusOr<ParameterServer::Restore> MakeRestore(
      const v1::Plan& plan, const ShardFileSeries& series) const {
    if (plan.restore_from().empty()) return ParameterServer::Restore();
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::shared_ptr<const CheckpointReader> reader,
        OpenToRestore(plan, series.shard, series.num_shards,
                      member_->checkpoint_key()));
    TRIBUTARY_ASSIGN_OR_RETURN(
        const std::shared_ptr<PlannedCheckpoint> checkpoint,
        PlannedCheckpoint::Create(reader, series.parameters,
                                  series.state_names));
    spdlog::info("going on after step {} of {}", plan.start_step(),
                 plan.restore_from());
    return ParameterServer::Restore{
        .load_block =
            [checkpoint](const Block& block, float* weights,
                         const std::vector<float*>& state) {
              return Unreadable(checkpoint->ReadBlock(
                  block, weights, absl::MakeConstSpan(state)));
            },
        .skipped_steps = reader->skipped_steps(),
        .on_loaded =
            [reader] { return Unreadable(reader->CompareChecksums()); }};
  }

  Member* const member_;
  ParameterServer& server_;
  Ops* const ops_;
  Histogram pause_seconds_{Histogram::SecondsBounds()};
  std::shared_ptr<Checkpointer> checkpointer_;
  bool has_memory_ = false;

  mutable absl::Mutex mu_;
  absl::Status fatal_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::Status RunServer(const ServerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<Exporter> exporter,
                             Exporter::Start({.listen = options.metrics_listen,
                                              .role = "server",
                                              .access = options.pages}));
  Exporter::Handle joining = exporter->AddHealthCheck([&options] {
    return Health{false, absl::StrCat("waits for a place at coordinator ",
                                      options.coordinator)};
  });
  TRIBUTARY_FAILPOINT("server-started");
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const auto guard = std::make_shared<CallGuard>(options.access.Guard());
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterServer> server,
      ParameterServer::Start(
          {.listen = options.listen,
           .memory_directory = options.shared_memory_directory,
           .memory_any_user = options.shared_memory_any_user,
           .guard = guard,
           .reflection = options.reflection}));
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
                    .timeouts = {.join = options.join_timeout},
                    .callbacks = {.bring_up_to_date =
                                      [server = server.get()](
                                          v1::HeartbeatRequest* heartbeat) {
                                        SetFigures(server->GetStatus(),
                                                   heartbeat);
                                      }},
                    .proof = options.access.Proof(),
                    .checkpoint_roots = options.checkpoint_roots}));
  if (member->job_key().empty()) {
    return absl::FailedPreconditionError(
        "the coordinator gives no key for tickets: is its version older?");
  }
  guard->SetJob({.name = member->job().name(),
                 .id = member->job_id(),
                 .key = member->job_key()});
  server->SetProof(member->proof());
  SetLogIndex(member->index());
  member->display().SetDevice(ops->device_name());
  joining = Exporter::Handle();
  const Exporter::Handle health = exporter->AddHealthCheck([&member] {
    return HealthOf(member->Contact(), member->display().waiting_for());
  });
  const LeaveOnSignal leave(member.get(),
                            absl::StrCat("shard ", member->index()));
  Service service(member.get(), server.get(), ops.get());
  const Exporter::Handle metrics =
      exporter->AddSource([&](MetricsWriter* writer) {
        server->WriteMetrics(writer);
        service.WriteMetrics(writer);
      });
  const absl::Status status = ServeUntilEnd(*member, service);
  server->Shutdown();  // before the objects that its shard calls
  return status;
}

}  // namespace tributary
