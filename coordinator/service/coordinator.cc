// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/restore.h"
#include "common/host/address.h"
#include "common/job/job_options.h"
#include "common/member/answer_limits.h"
#include "common/plan/model_cut.h"
#include "common/plan/partition_plan.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/identity/member_ticket.h"
#include "coordinator/service/coordinator_service.h"
#include "coordinator/service/job_metrics.h"
#include "coordinator/service/read_weights.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

constexpr char kServiceName[] = "tributary.v1.CoordinatorService";
constexpr absl::Duration kLastAnswers = absl::Seconds(2);
constexpr absl::Duration kLeaseTick = absl::Milliseconds(100);
// An evaluation part holds five bytes a sample for the exact AUC.
constexpr int kMaxRequestBytes = 256 << 20;
constexpr int kMostCalls = 256;  // of a connection at once
// Threads beyond two per member (one for its call, and one for a call that its
// previous process left waiting).
constexpr int kSpareThreads = 64;
static_assert(JobCalls::kMostObservers <= kSpareThreads / 2);

// Limits the cost that peers may cause. Members make few calls, but one
// evaluation may be large.
void LimitPeers(const v1::ClusterSpec& cluster, PeerConnections* connections) {
  PeerConnections::Limits limits = connections->limits();
  const auto members = static_cast<size_t>(cluster.servers()) +
                       static_cast<size_t>(cluster.workers());
  limits.nobodys = std::max(limits.nobodys, 2 * members);
  limits.bytes = limits.nobodys_bytes = kMaxRequestBytes + (64 << 20);
  // gRPC reports late that a call has ended. A client that keeps kMostCalls
  // calls open is therefore counted with a few more.
  limits.calls = limits.arriving = 2 * kMostCalls;
  limits.nobodys_calls = 1024 + 4 * static_cast<int64_t>(members);
  connections->SetLimits(limits);
}

absl::Status CheckCluster(const v1::JobSpec& job) {
  const v1::ClusterSpec& cluster = job.cluster();
  const int fewest = StrategyOf(job).uses_servers() ? 1 : 0;
  if (cluster.servers() < fewest ||
      cluster.servers() > PartitionPlan::kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.servers must be ", fewest, " to ",
                     PartitionPlan::kMaxShards, ", got ", cluster.servers()));
  }
  if (cluster.workers() < 1 || cluster.workers() > Membership::kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.workers must be 1 to ", Membership::kMaxWorkers,
                     ", got ", cluster.workers()));
  }
  return absl::OkStatus();
}

// Returns an id that is not zero and differs from every earlier job's id: a
// process that has outlived its job must not be taken for a member of this one.
uint64_t NewJobId() {
  std::random_device chance;
  const uint64_t id = uint64_t{chance()} << 32 | chance();
  return id == 0 ? 1 : id;
}

// Limits the heartbeats of the whole job to about a hundred a second. Beyond a
// hundred members each still sends one a second.
uint32_t HeartbeatMs(const v1::ClusterSpec& cluster) {
  return static_cast<uint32_t>(
      std::clamp(10 * (cluster.servers() + cluster.workers()), 100, 1000));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(
    Options options) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(options.listen));
  TRIBUTARY_RETURN_IF_ERROR(CheckCluster(options.job));
  JobState::Options state;
  state.job = options.job;
  state.job_id = options.predecessor.state != nullptr
                     ? options.predecessor.state->job_id()
                     : NewJobId();
  if (options.predecessor.state != nullptr) {
    state.job_key = options.predecessor.state->job_key();
    if (options.predecessor.state->checkpoint_key_id() !=
        CheckpointKeyId(options.checkpoint_key)) {
      return absl::InvalidArgumentError(
          options.checkpoint_key.empty()
              ? "the job's checkpoints have a keyed checksum: its "
                "--checkpoint-key is wanted"
              : "the job's checkpoints have another key or none: the "
                "--checkpoint-key with which the job began is wanted, or none");
    }
  }
  if (state.job_key.empty()) state.job_key = NewJobKey();
  state.heartbeat_ms = HeartbeatMs(options.job.cluster());
  state.lease_ms =
      static_cast<uint32_t>(absl::ToInt64Milliseconds(options.timeouts.lease));
  state.start_timeout_micros =
      absl::ToInt64Microseconds(options.timeouts.start);
  state.loss_timeout_micros = absl::ToInt64Microseconds(options.timeouts.loss);
  state.start = options.start;
  state.checkpoint_key = options.checkpoint_key;
  if (options.predecessor.state != nullptr) {
    state.start.lineage = options.predecessor.state->lineage();
  }
  if (state.start.lineage == 0) state.start.lineage = state.job_id;
  state.host = HostName();
  state.hold_start = options.hold_start;
  if (state.lease_ms < 3 * state.heartbeat_ms) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a lease must last three heartbeats of ", state.heartbeat_ms,
        " ms, got ", absl::FormatDuration(options.timeouts.lease)));
  }
  std::unique_ptr<Coordinator> coordinator(
      new Coordinator(std::move(options), std::move(state)));
  TRIBUTARY_RETURN_IF_ERROR(coordinator->Listen());
  return coordinator;
}

Coordinator::Coordinator(Options options, JobState::Options state)
    : options_(std::move(options)),
      job_id_(state.job_id),
      job_key_(state.job_key),
      lineage_(state.start.lineage),
      control_({.state = std::move(state),
                .clock = options_.clock,
                .save = options_.savers.state,
                .save_evaluations = options_.savers.evaluations,
                .predecessor = options_.predecessor,
                .started_micros = options_.started_micros}),
      rounds_({.clock = options_.clock,
               .loss_timeout = options_.timeouts.loss,
               .ranks_have_weights = !StrategyOf(options_.job).uses_servers()},
              &control_, this),
      side_({kServiceName}, options_.calls.guard, options_.calls.reflection) {}

absl::Status Coordinator::Listen() {
  options_.calls.guard->SetJob(
      {.name = options_.job.name(), .id = job_id_, .key = job_key_});
  service_ = MakeCoordinatorService(&control_, options_.calls.guard);
  TRIBUTARY_ASSIGN_OR_RETURN(
      port_, PeerPort::Listen(options_.listen, options_.calls.guard,
                              options_.listening));
  const v1::ClusterSpec& cluster = options_.job.cluster();
  LimitPeers(cluster, options_.calls.guard->connections().get());
  grpc::ServerBuilder builder;
  port_->AddTo(&builder, kMostCalls);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(kMaxAnswerBytes);
  grpc::ResourceQuota quota("coordinator");
  quota.SetMaxThreads(2 * (cluster.servers() + cluster.workers()) +
                      kSpareThreads);
  builder.SetResourceQuota(quota);
  builder.RegisterService(service_.get());
  side_.Add(&builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::InternalError(
        absl::StrCat("cannot serve on ", options_.listen));
  }
  address_ = absl::StrCat(options_.listen.substr(0, options_.listen.rfind(':')),
                          ":", port_->port());
  spdlog::info("coordinator of \"{}\" listens on {}", options_.job.name(),
               address_);
  side_.Start();
  port_->Start();
  lease_thread_ = std::thread([this] { WatchLeases(); });
  thread_ = std::thread([this] { rounds_.Run(); });
  return absl::OkStatus();
}

void Coordinator::WriteMetrics(MetricsWriter* writer) const {
  WriteJobMetrics(control_.Snapshot(), control_.CheckpointSeconds(), writer);
}

Coordinator::~Coordinator() {
  side_.GoHome();
  control_.Close();
  // Answers that have been started still arrive: the last heartbeat's answer
  // tells a member that the job has ended, and a member without it would wait
  // for its coordinator.
  if (server_ != nullptr) {
    port_->Stop();
    server_->Shutdown(DeadlineAfter(kLastAnswers));
    side_.Stop();
  }
  if (lease_thread_.joinable()) lease_thread_.join();
  if (thread_.joinable()) thread_.join();
}

void Coordinator::RemoveFailed(const std::string& folder) {
  std::error_code error;
  if (!ReadCheckpointInfo(folder).complete()) {
    std::filesystem::remove_all(folder, error);
  }
}

absl::Status Coordinator::WriteManifest(const PendingManifest& pending) {
  return tributary::WriteManifest(pending.directory, pending.manifest,
                                  options_.checkpoint_key);
}

void Coordinator::RevokeManifest(const PendingManifest& pending) {
  const absl::Status status =
      tributary::RevokeManifest(pending.directory, pending.manifest.step());
  spdlog::warn("the checkpoint of step {} is of a plan that is over: {}",
               pending.manifest.step(), status.ToString());
}

void Coordinator::ManifestWritten(const PendingManifest& pending, bool saved) {
  spdlog::info("checkpoint of step {}: {}/{}", pending.manifest.step(),
               pending.directory,
               CheckpointFolderName(pending.manifest.step()));
  // Old checkpoints stay until the saved state names this one, because a
  // restarted coordinator would go back to the one that the state names.
  if (!saved) return;
  const absl::Status status = PruneCheckpoints(
      pending.directory, options_.job.checkpoint().keep(),
      {lineage_, WriterTag(job_id_, pending.manifest.plan_epoch()),
       control_.output().BestStep()});
  if (!status.ok()) {
    spdlog::warn("old checkpoints stay: {}", std::string(status.message()));
  }
}

CallerProof Coordinator::Proof() const {
  return options_.calls.proof.WithTicket(
      MakeTicket(job_key_, {.job_id = job_id_, .role = v1::ROLE_COORDINATOR}));
}

void Coordinator::WatchLeases() {
  while (!control_.closed()) control_.Tick(kLeaseTick);
}

absl::StatusOr<JobFiles::OlderCheckpoint> Coordinator::GoBackBefore(
    const UnreadableCheckpoint& lost) {
  const CheckpointInfo seen = ReadCheckpointInfo(lost.folder);
  if (seen.lineage == lineage_ && seen.step == lost.step &&
      IsWhole(VerifyCheckpoint(lost.folder, options_.checkpoint_key))) {
    return absl::DataLossError(absl::StrCat(
        lost.why, "; the coordinator finds ", lost.folder,
        " intact; check that it is the same folder on every host, and check "
        "the member's disk"));
  }
  // A resumed job's first checkpoint is in another run's directory.
  const int64_t begin = options_.start.step;
  absl::StatusOr<CheckpointInfo> older = absl::NotFoundError("");
  for (const std::string& directory :
       {lost.directory, std::filesystem::path(options_.start.restore_from)
                            .parent_path()
                            .string()}) {
    if (older.ok() || directory.empty()) continue;
    older = OlderWholeCheckpoint(directory, lineage_, begin, lost.step,
                                 options_.checkpoint_key);
  }
  if (!older.ok() && begin > 0) {
    return absl::DataLossError(
        absl::StrCat("the checkpoint of step ", lost.step, " cannot be read, ",
                     lost.why, "; no older one of this run is intact"));
  }
  const int64_t step = older.ok() ? older->step : 0;
  // The job recomputes the steps after this one, so later checkpoints are void.
  if (!lost.directory.empty()) {
    const absl::Status status =
        RemoveCheckpointsAfter(lost.directory, step, lineage_);
    if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
  }
  return OlderCheckpoint{step, older.ok() ? older->path : ""};
}

void Coordinator::LeaveWholeCheckpoints(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) return;
  const absl::Status status =
      PruneCheckpoints(directory, options_.job.checkpoint().keep(),
                       {lineage_, "", control_.output().BestStep()});
  if (!status.ok()) {
    spdlog::warn("half-written checkpoints stay: {}",
                 std::string(status.message()));
  }
}

absl::StatusOr<FinalWeights> Coordinator::ReadWeights(
    const v1::Plan& plan, int64_t step,
    const std::function<bool()>& cancelled) {
  ReadWeightsOptions read;
  read.proof = Proof();
  read.clock = options_.clock;
  // Long enough for the loss of a server to be detected, which ends this plan.
  read.timeout += options_.timeouts.loss +
                  absl::Seconds(options_.job.cluster().lease_seconds());
  read.cancelled = cancelled;
  TRIBUTARY_ASSIGN_OR_RETURN(
      FinalWeights weights,
      StrategyOf(options_.job).uses_servers()
          ? ReadFinalWeights(plan, StepCountOf(options_.job).VersionAfter(step),
                             read)
          : control_.output().RankWeights(step));
  weights.step = step;
  weights.tensors =
      AssembleWhole(weights.parameters, std::move(weights.tensors));
  weights.parameters = WholeParameters(weights.parameters);
  return weights;
}

absl::Status Coordinator::SaveWeights(const FinalWeights& weights) {
  return options_.savers.weights ? options_.savers.weights(weights)
                                 : absl::OkStatus();
}

}  // namespace tributary
