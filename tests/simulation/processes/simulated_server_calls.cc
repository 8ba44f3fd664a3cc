// The calls of the service, and checks of each answer.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/service/block_address.h"
#include "tests/simulation/processes/serving.h"
#include "tests/simulation/processes/simulated_server.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// As in PeerStatistics.
constexpr int64_t kPeerWait = 10 * kSecond;
constexpr int64_t kPeerMargin = 5 * kSecond;
constexpr int64_t kPeerRetry = 50 * kMilli;

// Every answered call must have been made under the plan being served.
absl::Status OfThisPlan(const v1::Plan& plan, const v1::BlockAddress& address) {
  if (address.job_id() == plan.job_id() &&
      address.plan_epoch() == plan.epoch()) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "a call of job ", address.job_id(), ", plan epoch ", address.plan_epoch(),
      " counts in job ", plan.job_id(), ", plan epoch ", plan.epoch()));
}

}  // namespace

v1::BlockAddress AddressOf(const v1::Plan& plan, int shard, int block) {
  v1::BlockAddress address;
  address.set_job_id(plan.job_id());
  address.set_plan_epoch(plan.epoch());
  address.set_shard(static_cast<uint32_t>(shard));
  address.set_block(static_cast<uint32_t>(block));
  return address;
}

absl::Status SimulatedServer::CheckAddress(
    const v1::BlockAddress& address) const {
  if (!serving_) return CheckBlockAddress(nullptr, 0, 0, address);
  return CheckBlockAddress(&serving_->plan, serving_->shard,
                           serving_->cut.blocks(serving_->shard).size(),
                           address);
}

void SimulatedServer::Judge(const absl::Status& status,
                            const v1::BlockAddress& address) {
  if (status.ok()) return;
  context_->world.Violate(absl::StrCat("shard ", address.shard(), ", block ",
                                       address.block(), ": ",
                                       std::string(status.message())));
}

WeightsDone SimulatedServer::Watch(const v1::BlockAddress& address,
                                   std::optional<Reader> reader,
                                   Reply<WeightsSnapshot> reply) {
  return [this, address, reader, reply = std::move(reply),
          serving = serving_](absl::StatusOr<WeightsSnapshot> weights) {
    if (weights.ok()) {
      Judge(OfThisPlan(serving->plan, address), address);
      const Block& block = serving->cut.blocks(serving->shard)[address.block()];
      context_->oracle.Shown(block, *weights, reader);
      context_->world.Mix(weights->crc32c);
      const auto [seen, is_new] = serving->shown.try_emplace(
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

void SimulatedServer::PushPull(const PushCall& call,
                               Reply<WeightsSnapshot> reply) {
  if (absl::Status status = CheckAddress(call.address); !status.ok()) {
    return reply(status);
  }
  const ServingPtr serving = serving_;
  ParameterShard& store = *serving->store;
  testing::ContributionLedger& ledger = serving->ledgers[call.address.block()];
  const ShardCounters& counters = store.counters();
  const uint64_t counted = counters.contributions;
  const uint64_t repeated = counters.duplicates;
  const uint32_t rank = call.contribution.rank;
  const uint64_t incarnation = call.contribution.incarnation;
  const int64_t step = call.contribution.step;
  store.PushPull(call.address.block(), call.contribution,
                 context_->world.now() + call.wait_micros,
                 Watch(call.address, Reader{rank, step + 1}, std::move(reply)));
  if (counters.contributions > counted) {
    Judge(OfThisPlan(serving->plan, call.address), call.address);
    Judge(ledger.Counted(rank, incarnation, step), call.address);
  }
  if (counters.duplicates > repeated) {
    Judge(ledger.Repeated(rank, incarnation, step), call.address);
    ++context_->network.faults()["contribution repeated"];
  }
}

void SimulatedServer::Pull(const PullCall& call, Reply<WeightsSnapshot> reply) {
  if (absl::Status status = CheckAddress(call.address); !status.ok()) {
    return reply(status);
  }
  const ServingPtr serving = serving_;
  const int64_t deadline = context_->world.now() + call.wait_micros;
  WeightsDone done = Watch(call.address, call.reader, std::move(reply));
  if (call.reader) {
    serving->store->PullFinished(static_cast<int>(call.address.block()),
                                 call.reader->finished, deadline,
                                 std::move(done));
  } else if (call.exact) {
    const int64_t version = call.version;
    serving->store->PullExact(
        call.address.block(), version, deadline,
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
    serving->store->Pull(call.address.block(), call.version, deadline,
                         std::move(done));
  }
}

void SimulatedServer::ReadClock(const ClockCall& call,
                                Reply<ParameterShard::Clock> reply) {
  if (absl::Status status = CheckAddress(call.address); !status.ok()) {
    return reply(status);
  }
  absl::StatusOr<ParameterShard::Clock> clock = serving_->store->ReadClock(
      static_cast<int>(call.rank), call.incarnation, call.recomputes);
  if (clock.ok()) {
    Judge(OfThisPlan(serving_->plan, call.address), call.address);
    for (testing::ContributionLedger& ledger : serving_->ledgers) {
      ledger.Fence(call.rank, call.incarnation);
      if (call.recomputes && context_->scenario.gathers()) {
        ledger.MayComeAgain(call.rank, call.incarnation);
      }
    }
  }
  reply(std::move(clock));
}

void SimulatedServer::Initialize(const FirstWeights& call,
                                 Reply<Nothing> reply) {
  if (absl::Status status = CheckAddress(call.address); !status.ok()) {
    return reply(status);
  }
  const ServingPtr serving = serving_;
  const Payload payload =
      Payload::Copy(call.values.data(), call.values.size() * sizeof(float));
  const absl::Status status = serving->store->Initialize(
      call.address.block(), payload.Crc32c(), payload);
  if (!status.ok()) return reply(status);
  reply(Nothing());
}

void SimulatedServer::ReadStatistics(const StatisticsCall& call,
                                     Reply<std::vector<double>> reply) {
  if (absl::Status status = CheckAddress(call.address); !status.ok()) {
    return reply(status);
  }
  const ServingPtr serving = serving_;
  serving->store->ReadStatistics(call.step, call.kind,
                                 context_->world.now() + call.wait_micros,
                                 std::move(reply));
}

void SimulatedServer::Fetch(const ServingPtr& serving, int64_t step,
                            StatisticsKind kind, int from) {
  const StatisticsCall call{AddressOf(serving->plan, from, 0), step, kind,
                            kPeerWait};
  context_->network.Call(
      this, serving->plan.servers(from), "statistics", World::Kind::kWork,
      kPeerWait + kPeerMargin, &SimulatedServer::ReadStatistics, call,
      [=, this](absl::StatusOr<std::vector<double>> values) {
        if (!serving->store) return;  // the plan has ended
        if (values.ok()) {
          Judge(serving->store->AddStatistics(step, kind, from,
                                              *std::move(values)),
                AddressOf(serving->plan, serving->shard, 0));
        } else if (absl::IsUnavailable(values.status()) ||
                   absl::IsDeadlineExceeded(values.status())) {
          After(kPeerRetry, World::Kind::kWork, [=, this] {
            if (serving->store) Fetch(serving, step, kind, from);
          });
        }
      });
}

}  // namespace tributary::simulation
