// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/checked_plan.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tributary::simulation {

v1::BlockAddress AddressOf(const v1::Plan& plan, int shard, int block) {
  v1::BlockAddress address;
  address.set_job_id(plan.job_id());
  address.set_plan_epoch(plan.epoch());
  address.set_shard(static_cast<uint32_t>(shard));
  address.set_block(static_cast<uint32_t>(block));
  return address;
}

CheckedPlan::CheckedPlan(Context* context, const v1::Plan& plan,
                         PartitionPlan partition, ShardSetup setup,
                         ServedPlan::AskPeer ask_peer)
    : context_(context),
      served_(plan, std::move(partition), std::move(setup),
              std::move(ask_peer)) {
  testing::ContributionLedger::Options ledger;
  ledger.workers = context->scenario.workers;
  ledger.steps = plan.start_step();
  ledger.may_skip = context->scenario.backup_workers > 0;
  const auto& blocks = served_.partition().blocks(served_.shard());
  for (size_t b = 0; b < blocks.size(); ++b) ledgers_.emplace_back(ledger);
  for (testing::ContributionLedger& of_block : ledgers_) {
    for (int rank = 0; rank < plan.incarnations_size(); ++rank) {
      of_block.Fence(static_cast<uint32_t>(rank), plan.incarnations(rank));
    }
  }
}

void CheckedPlan::CallAsFormerHolders() {
  const v1::Plan& plan = served_.plan();
  const auto& blocks = served_.partition().blocks(served_.shard());
  if (blocks.empty()) return;
  const v1::BlockAddress address = AddressOf(plan, served_.shard(), 0);
  const std::vector<float> gradient(static_cast<size_t>(blocks[0].size), 1.0f);
  for (int rank = 0; rank < plan.incarnations_size(); ++rank) {
    if (plan.incarnations(rank) < 2) continue;
    PushCall push{.address = address};
    Contribution& sent = push.contribution;
    sent.rank = static_cast<uint32_t>(rank);
    sent.incarnation = plan.incarnations(rank) - 1;
    sent.step = plan.start_step();
    sent.samples = 1;
    sent.payload =
        Payload::Copy(gradient.data(), gradient.size() * sizeof(float));
    sent.crc32c = sent.payload.ScanFloats().crc32c;
    const ClockCall clock{address, sent.rank, sent.incarnation};
    ReadClock(clock, [this, &clock](absl::StatusOr<RankProgress> progress) {
      if (!progress.ok()) return;
      Judge(absl::InternalError(absl::StrCat(
                "rank ", clock.rank, " is answered as incarnation ",
                clock.incarnation, ", which lost it before this plan")),
            clock.address);
    });
    PushPull(push, [](const absl::StatusOr<WeightsSnapshot>&) {});
    ++context_->network.faults()["former holder called"];
  }
}

void CheckedPlan::Judge(const absl::Status& status,
                        const v1::BlockAddress& address) {
  if (status.ok()) return;
  context_->world.Violate(absl::StrCat("shard ", address.shard(), ", block ",
                                       address.block(), ": ",
                                       std::string(status.message())));
}

void CheckedPlan::JudgePlan(const v1::BlockAddress& address) {
  const v1::Plan& plan = served_.plan();
  if (address.job_id() == plan.job_id() &&
      address.plan_epoch() == plan.epoch()) {
    return;
  }
  Judge(absl::InternalError(absl::StrCat("a call of job ", address.job_id(),
                                         ", plan epoch ", address.plan_epoch(),
                                         " counts in job ", plan.job_id(),
                                         ", plan epoch ", plan.epoch())),
        address);
}

WeightsDone CheckedPlan::Watch(const v1::BlockAddress& address,
                               std::optional<Reader> reader,
                               Reply<WeightsSnapshot> reply) {
  return [this, address, reader,
          reply = std::move(reply)](absl::StatusOr<WeightsSnapshot> weights) {
    if (weights.ok()) {
      JudgePlan(address);
      const auto& blocks = served_.partition().blocks(served_.shard());
      context_->oracle.Shown(blocks[address.block()], *weights, reader);
      context_->world.Mix(weights->crc32c);
      const auto [seen, is_new] = shown_.try_emplace(
          {address.block(), weights->version}, weights->crc32c);
      if (!is_new && seen->second != weights->crc32c) {
        Judge(absl::InternalError(
                  absl::StrCat("version ", weights->version, " has changed")),
              address);
      }
    } else if (absl::IsDeadlineExceeded(weights.status()) &&
               absl::EndsWith(weights.status().message(), " ")) {
      Judge(absl::InternalError(
                absl::StrCat("a wait does not say for whom: ",
                             std::string(weights.status().message()))),
            address);
    }
    reply(std::move(weights));
  };
}

void CheckedPlan::PushPull(const PushCall& call, Reply<WeightsSnapshot> reply) {
  testing::ContributionLedger& ledger = ledgers_[call.address.block()];
  const ShardCounters& counters = served_.store().counters();
  const uint64_t counted = counters.contributions;
  const uint64_t repeated = counters.duplicates;
  const uint32_t rank = call.contribution.rank;
  const uint64_t incarnation = call.contribution.incarnation;
  const int64_t step = call.contribution.step;
  served_.store().PushPull(
      call.address.block(), call.contribution,
      context_->world.now() + call.wait_micros,
      Watch(call.address, Reader{rank, step + 1}, std::move(reply)));
  if (counters.contributions > counted) {
    JudgePlan(call.address);
    Judge(ledger.Counted(rank, incarnation, step), call.address);
  }
  if (counters.duplicates > repeated) {
    Judge(ledger.Repeated(rank, incarnation, step), call.address);
    ++context_->network.faults()["contribution repeated"];
  }
}

void CheckedPlan::Pull(const PullCall& call, Reply<WeightsSnapshot> reply) {
  ParameterShard& store = served_.store();
  const auto block = static_cast<int>(call.address.block());
  const int64_t deadline = context_->world.now() + call.wait_micros;
  WeightsDone done = Watch(call.address, call.reader, std::move(reply));
  if (call.reader) {
    store.PullFinished(block, call.reader->finished, deadline, std::move(done));
  } else if (call.exact) {
    store.PullExact(
        block, call.version, deadline,
        [this, call, done](absl::StatusOr<WeightsSnapshot> weights) {
          if (weights.ok() && weights->version != call.version) {
            Judge(absl::InternalError(
                      absl::StrCat("version ", call.version, " was asked for, ",
                                   weights->version, " is answered")),
                  call.address);
          }
          done(std::move(weights));
        });
  } else {
    store.Pull(block, call.version, deadline, std::move(done));
  }
}

void CheckedPlan::ReadClock(const ClockCall& call, Reply<RankProgress> reply) {
  v1::ClockRequest request;
  request.set_rank(call.rank);
  request.set_incarnation(call.incarnation);
  request.set_recomputes(call.recomputes);
  absl::StatusOr<RankProgress> clock = served_.ReadClock(request);
  if (clock.ok()) {
    JudgePlan(call.address);
    for (testing::ContributionLedger& ledger : ledgers_) {
      ledger.Fence(call.rank, call.incarnation);
      if (call.recomputes && context_->scenario.gathers()) {
        ledger.MayComeAgain(call.rank, call.incarnation);
      }
    }
  }
  reply(std::move(clock));
}

void CheckedPlan::Initialize(const FirstWeights& call, Reply<Nothing> reply) {
  const Payload payload =
      Payload::Copy(call.values.data(), call.values.size() * sizeof(float));
  const absl::Status status = served_.store().Initialize(
      call.address.block(), payload.ScanFloats().crc32c, payload);
  if (!status.ok()) return reply(status);
  reply(Nothing());
}

void CheckedPlan::AddStatistics(const v1::StatisticsRequest& request,
                                std::vector<double> values) {
  Judge(served_.AddStatistics(request, std::move(values)),
        AddressOf(served_.plan(), served_.shard(), 0));
}

}  // namespace tributary::simulation
