#include "worker/trainer/make_synchronizer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/control/report_checkpoint.h"
#include "common/job/job_options.h"
#include "common/job/learning_rate_schedule.h"
#include "common/status_macros.h"
#include "spdlog/spdlog.h"
#include "worker/collective/mesh.h"
#include "worker/collective/peer_communicator.h"
#include "worker/parallel/all_reduce_synchronizer.h"
#include "worker/parallel/local_sgd_synchronizer.h"
#include "worker/parallel/parameter_server_synchronizer.h"

namespace tributary {
namespace {

using SynchronizerOr = absl::StatusOr<std::unique_ptr<GradientSynchronizer>>;
using RateOr = absl::StatusOr<std::function<double(int64_t step)>>;

RateOr LearningRateOf(const v1::JobSpec& job, int64_t total_steps) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      LearningRateSchedule schedule,
      LearningRateSchedule::Create(
          job.training().learning_rate_schedule(),
          OptimizerOptionsOf(job.training().optimizer()).learning_rate,
          total_steps));
  return [schedule = std::move(schedule)](int64_t step) {
    return schedule.At(step);
  };
}

ParameterServerSynchronizer::Mode ModeOf(const v1::SyncSpec& sync) {
  using Mode = ParameterServerSynchronizer::Mode;
  if (sync.has_ssp() || sync.has_async()) return Mode::kSeparate;
  return sync.bsp().backup_workers() > 0 ? Mode::kBackup : Mode::kBulk;
}

SynchronizerOr MakeParameterServer(const SynchronizerParts& parts,
                                   const v1::Plan& plan) {
  Member& member = *parts.member;
  const v1::JobSpec& job = member.job();
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterClient> client,
      ParameterClient::Connect(
          {.plan = plan,
           .rank = member.index(),
           .incarnation = member.incarnation(),
           .step_timeout = absl::Seconds(StepTimeoutSeconds(job)),
           .on_waiting =
               [&member, silent = parts.on_silent_shard](
                   const std::string& whom, int silent_shard) {
                 silent(silent_shard);
                 member.SetWaitingFor(whom);
               },
           .delay_micros = parts.delay_micros}));
  const v1::SyncSpec& sync = job.strategy().parameter_server().sync();
  if (!sync.has_local_sgd()) {
    return std::make_unique<ParameterServerSynchronizer>(
        std::move(client), parts.model, parts.ops, ModeOf(sync));
  }
  LocalSgdSynchronizer::Options options;
  options.client = std::move(client);
  options.model = parts.model;
  options.ops = parts.ops;
  options.period = sync.local_sgd().period();
  options.total_steps = parts.steps->total_steps();
  options.inner = OptimizerOptionsOf(job.training().optimizer());
  TRIBUTARY_ASSIGN_OR_RETURN(options.learning_rate,
                             LearningRateOf(job, options.total_steps));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<LocalSgdSynchronizer> made,
                             LocalSgdSynchronizer::Create(std::move(options)));
  return made;
}

absl::StatusOr<std::unique_ptr<Mesh>> ConnectMesh(
    const SynchronizerParts& parts, const v1::Plan& plan, int rank, int size,
    absl::Duration timeout) {
  Member& member = *parts.member;
  if (member.job().strategy().has_data_parallel()) {
    return parts.local_meshes->Take(plan.epoch(), "data", rank, size);
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string host,
                             LocalHostTowards(parts.coordinator));
  return ConnectGlooMesh({.rank = rank,
                          .size = size,
                          .host = host,
                          .connect_timeout = timeout,
                          .exchange = [&](std::string addresses) {
                            return member.Exchange(plan.epoch(), "data", rank,
                                                   size, std::move(addresses),
                                                   timeout);
                          }});
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectGroup(
    const SynchronizerParts& parts, const v1::Plan& plan) {
  Member& member = *parts.member;
  const v1::JobSpec& job = member.job();
  if (!parts.ops->is_host() ||
      job.strategy().all_reduce().backend() == v1::COLLECTIVE_BACKEND_NCCL) {
    return absl::FailedPreconditionError(absl::StrCat(
        StrategyName(job),
        " computes on the CPU, over gloo; this worker's device is ",
        parts.ops->device_name()));
  }
  const absl::Duration timeout = absl::Seconds(StepTimeoutSeconds(job));
  const int rank = static_cast<int>(member.index());
  const int size = job.cluster().workers();
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<Mesh> mesh,
                             ConnectMesh(parts, plan, rank, size, timeout));
  spdlog::info("rank {} of {} over {}", rank, size, mesh->backend());
  return std::make_unique<PeerCommunicator>(PeerCommunicator::Options{
      .mesh = std::move(mesh), .ops = parts.ops, .timeout = timeout});
}

// Where the ranks go on from and what they write on the way.
absl::Status PrepareCheckpoints(Member& member, const v1::Plan& plan,
                                AllReduceSynchronizer::Options* options) {
  options->start_step = plan.start_step();
  if (!plan.checkpoint_directory().empty()) {
    options->checkpoints.every_steps = member.job().checkpoint().every_steps();
    options->checkpoints.directory = plan.checkpoint_directory();
    options->checkpoints.job_id = plan.job_id();
    options->checkpoints.on_written =
        [&member, epoch = plan.epoch()](
            const Checkpointer::Written& written,
            const std::vector<std::string>& state_names) {
          ReportCheckpoint(written, state_names, epoch, &member);
        };
  }
  if (plan.restore_from().empty()) return absl::OkStatus();
  TRIBUTARY_ASSIGN_OR_RETURN(options->restore,
                             CheckpointReader::Open(plan.restore_from()));
  spdlog::info("going on after step {} of {}", plan.start_step(),
               plan.restore_from());
  return absl::OkStatus();
}

void ReadBuckets(const v1::StrategySpec& strategy,
                 AllReduceSynchronizer::Options* options) {
  using UpdateOn = AllReduceSynchronizer::UpdateOn;
  const auto read = [options](const auto& spec) {
    options->bucket_bytes = static_cast<int64_t>(spec.bucket_bytes());
    options->first_bucket_bytes =
        static_cast<int64_t>(spec.first_bucket_bytes());
  };
  if (strategy.has_data_parallel()) {
    options->update_on = UpdateOn::kRankZero;
    read(strategy.data_parallel());
    return;
  }
  options->update_on = strategy.all_reduce().sharded() ? UpdateOn::kOwnCut
                                                       : UpdateOn::kEveryRank;
  read(strategy.all_reduce());
}

SynchronizerOr MakeAllReduce(const SynchronizerParts& parts,
                             const v1::Plan& plan) {
  Member& member = *parts.member;
  const v1::JobSpec& job = member.job();
  AllReduceSynchronizer::Options options;
  TRIBUTARY_ASSIGN_OR_RETURN(options.group, ConnectGroup(parts, plan));
  options.model = parts.model;
  options.ops = parts.ops;
  ReadBuckets(job.strategy(), &options);
  options.optimizer = OptimizerOptionsOf(job.training().optimizer());
  options.clip_norm = job.training().clip_norm();
  options.skip_nonfinite = job.training().nonfinite() == v1::NON_FINITE_SKIP;
  TRIBUTARY_ASSIGN_OR_RETURN(options.learning_rate,
                             LearningRateOf(job, parts.steps->total_steps()));
  options.samples = [steps = parts.steps,
                     size = options.group->size()](int64_t step) {
    std::vector<uint64_t> samples;
    for (int rank = 0; rank < size; ++rank) {
      samples.push_back(static_cast<uint64_t>(steps->RankSamples(step, rank)));
    }
    return samples;
  };
  TRIBUTARY_RETURN_IF_ERROR(PrepareCheckpoints(member, plan, &options));
  options.on_waiting = [&member](const std::string& whom) {
    member.SetWaitingFor(whom);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<AllReduceSynchronizer> made,
                             AllReduceSynchronizer::Create(std::move(options)));
  return made;
}

}  // namespace

SynchronizerOr MakeSynchronizer(const SynchronizerParts& parts,
                                const v1::Plan& plan) {
  return UsesServers(parts.member->job()) ? MakeParameterServer(parts, plan)
                                          : MakeAllReduce(parts, plan);
}

}  // namespace tributary
