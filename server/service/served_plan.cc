// SPDX-License-Identifier: Apache-2.0
#include "server/service/served_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "server/service/block_address.h"
#include "server/store/rejection.h"
#include "spdlog/spdlog.h"

namespace tributary {
namespace {

// nullopt: the phase is unknown.
std::optional<StatisticsKind> KindOf(v1::StatisticsPhase phase) {
  switch (phase) {
    case v1::GRADIENT_NORM:
      return StatisticsKind::kGradientNorm;
    case v1::FACTORS:
      return StatisticsKind::kFactors;
    case v1::TRUST_RATIO:
      return StatisticsKind::kTrustRatio;
    default:
      return std::nullopt;
  }
}

v1::StatisticsPhase PhaseOf(StatisticsKind kind) {
  return kind == StatisticsKind::kGradientNorm ? v1::GRADIENT_NORM
         : kind == StatisticsKind::kFactors    ? v1::FACTORS
                                               : v1::TRUST_RATIO;
}

// Memory for the versions of the weights that may be read at a time: the
// current one, the one that is written, and, where workers do not wait for each
// other, one for each worker. Further versions are kept outside, where no other
// process can read them. Unused memory takes no space.
std::shared_ptr<SharedArena> MemoryFor(const ShardSetup& setup,
                                       const PartitionPlan& partition,
                                       int num_workers) {
  constexpr int kMostVersions = 8;
  if (!setup.shares_memory || partition.shard_elements(setup.shard) == 0) {
    return nullptr;
  }
  size_t version = 0;
  for (const Block& block : partition.blocks(setup.shard)) {
    version += SharedArena::Taken(static_cast<size_t>(block.bytes()));
  }
  const int versions = setup.training.policy->gathers()
                           ? 2
                           : std::min(num_workers + 2, kMostVersions);
  absl::StatusOr<std::shared_ptr<SharedArena>> memory =
      SharedArena::Create(version * versions);
  if (memory.ok()) return *std::move(memory);
  spdlog::warn("weights are sent instead of shared: {}",
               std::string(memory.status().message()));
  return nullptr;
}

}  // namespace

ServedPlan::ServedPlan(const v1::Plan& plan, PartitionPlan partition,
                       ShardSetup setup, AskPeer ask_peer)
    : plan_(plan),
      partition_(std::move(partition)),
      shard_(setup.shard),
      memory_(MemoryFor(setup, partition_, plan.num_workers())),
      store_(OptionsOf(std::move(setup), std::move(ask_peer))),
      waits_(plan.num_workers()) {}

ParameterShard::Options ServedPlan::OptionsOf(ShardSetup setup,
                                              AskPeer ask_peer) const {
  ParameterShard::Options options;
  options.plan = &partition_;
  options.shard = shard_;
  options.num_workers = plan_.num_workers();
  options.fences = {plan_.incarnations().begin(), plan_.incarnations().end()};
  if (plan_.has_mesh()) options.mesh = MeshOf(plan_);
  options.training = std::move(setup.training);
  options.ops = setup.ops;
  options.memory = memory_;
  options.callbacks.on_fatal = std::move(setup.on_fatal);
  options.callbacks.on_checkpoint = std::move(setup.on_checkpoint);
  options.trace = setup.trace;
  options.callbacks.fetch_statistics = [this, ask = std::move(ask_peer)](
                                           int64_t step, StatisticsKind kind) {
    AskPeers(step, kind, ask);
  };
  return options;
}

void ServedPlan::AskPeers(int64_t step, StatisticsKind kind,
                          const AskPeer& ask) const {
  v1::StatisticsRequest request;
  request.set_job_id(plan_.job_id());
  request.set_plan_epoch(plan_.epoch());
  request.set_step(step);
  request.set_phase(PhaseOf(kind));
  request.set_wait_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(kPeerRetryPolicy.hold)));
  for (int peer = 0; peer < partition_.num_shards(); ++peer) {
    if (peer == shard_ || partition_.shard_elements(peer) == 0) continue;
    request.set_shard(static_cast<uint32_t>(peer));
    ask(request);
  }
}

absl::Status ServedPlan::AddStatistics(const v1::StatisticsRequest& request,
                                       std::vector<double> values) {
  return store_.AddStatistics(request.step(), *KindOf(request.phase()),
                              static_cast<int>(request.shard()),
                              std::move(values));
}

absl::Status ServedPlan::CheckAddress(const ServedPlan* served,
                                      const v1::BlockAddress& address) {
  if (served == nullptr) return CheckBlockAddress(nullptr, 0, 0, address);
  return CheckBlockAddress(&served->plan_, served->shard_,
                           served->partition_.blocks(served->shard_).size(),
                           address);
}

absl::Status ServedPlan::CheckAddress(const ServedPlan* served,
                                      const v1::StatisticsRequest& request) {
  v1::BlockAddress address;  // sums are per shard
  address.set_job_id(request.job_id());
  address.set_plan_epoch(request.plan_epoch());
  address.set_shard(request.shard());
  return CheckAddress(served, address);
}

absl::Status ServedPlan::CheckRank(uint32_t rank) const {
  if (rank < static_cast<uint32_t>(plan_.num_workers())) {
    return absl::OkStatus();
  }
  return Reject(Rejection::kRank,
                absl::InvalidArgumentError(absl::StrCat(
                    "rank ", rank, ", wanted below ", plan_.num_workers())));
}

absl::Status ServedPlan::CheckHolder(const v1::BlockAddress& address,
                                     uint32_t rank,
                                     uint64_t incarnation) const {
  TRIBUTARY_RETURN_IF_ERROR(CheckRank(rank));
  return store_.CheckFence(static_cast<int>(address.block()),
                           static_cast<int>(rank), incarnation);
}

absl::StatusOr<RankProgress> ServedPlan::ReadClock(
    const v1::ClockRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(CheckRank(request.rank()));
  return store_.ReadClock(static_cast<int>(request.rank()),
                          request.incarnation(), request.recomputes());
}

void ServedPlan::ReadStatistics(const v1::StatisticsRequest& request,
                                int64_t deadline_micros, StatisticsDone done) {
  const std::optional<StatisticsKind> kind = KindOf(request.phase());
  if (!kind) {
    return done(
        Reject(Rejection::kAddress,
               absl::InvalidArgumentError(absl::StrCat(
                   "statistics phase ", request.phase(), ", wanted 1 to 3"))));
  }
  store_.ReadStatistics(request.step(), *kind, deadline_micros,
                        std::move(done));
}

void ServedPlan::Tick(int64_t now_micros) {
  store_.ExpireWaiters(now_micros);
  waits_.Sample(now_micros, store_.MissingRanks());
}

}  // namespace tributary
