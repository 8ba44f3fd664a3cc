// How weights and gradients travel between a rank and the servers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/crc32c.h"
#include "tests/simulation/processes/simulated_rank.h"

namespace tributary::simulation {
namespace {

// Time between the blocks of a step.
constexpr int64_t kBlockMicros = 300;

}  // namespace

absl::Status SimulatedRank::TakeWeights(const Block& block,
                                        WeightsSnapshot weights) {
  Random& random = context_->world.random();
  uint32_t crc = weights.crc32c;
  if (random.Chance(context_->network.adversity().damage)) {
    ++context_->network.faults()["answer damaged"];
    crc ^= 1;
  }
  if (Crc32c(weights.weights.data(), block.bytes()) != crc) {
    if (crc == weights.crc32c) {
      context_->world.Violate("an answer's weights changed on their way");
    }
    return absl::DataLossError("weights were damaged on the way");
  }
  newest_version_ = std::max(newest_version_, weights.version);
  versions_[{block.shard, block.index}] = weights.version;
  std::vector<float*> tensors;
  for (std::vector<float>& tensor : weights_) tensors.push_back(tensor.data());
  PartitionPlan::Scatter(block, weights.weights.data(),
                         absl::MakeConstSpan(tensors));
  return absl::OkStatus();
}

int64_t SimulatedRank::OldestVersion() const {
  int64_t oldest = INT64_MAX;
  for (const auto& [block, version] : versions_) {
    oldest = std::min(oldest, version);
  }
  return oldest;
}

void SimulatedRank::AddPull(const Block& block, int64_t version, bool exact,
                            std::optional<Reader> reader) {
  const PullCall call{AddressOf(plan_, block.shard, block.index), version,
                      exact, reader, 0};
  round_.Add(0, [this, call, &block](int64_t hold, int64_t timeout,
                                     std::function<void(absl::Status)> done) {
    PullCall pull = call;
    pull.wait_micros = hold;
    context_->network.Call<WeightsSnapshot>(
        process_, plan_.servers(block.shard), "pull", World::Kind::kWork,
        timeout,
        [pull](Process& server, Reply<WeightsSnapshot> reply) {
          static_cast<SimulatedServer&>(server).Pull(pull, std::move(reply));
        },
        [this, done, &block,
         mine = timer_](absl::StatusOr<WeightsSnapshot> weights) {
          if (ended_ || OfAnotherPhase(mine)) return;
          done(weights.ok() ? TakeWeights(block, *std::move(weights))
                            : weights.status());
        });
  });
}

void SimulatedRank::AddPush(const Block& block) {
  PushCall call;
  call.address = AddressOf(plan_, block.shard, block.index);
  Contribution& c = call.contribution;
  c.rank = *rank_;
  c.incarnation = member_.incarnation();
  c.step = step_;
  c.samples = context_->model.Samples(*rank_, step_);
  if (c.samples > 0) {
    std::vector<float> values(block.size);
    std::vector<const float*> tensors;
    for (const std::vector<float>& t : gradient_) tensors.push_back(t.data());
    PartitionPlan::Gather(block, tensors, values.data());
    c.payload = Payload::Copy(values.data(), values.size() * sizeof(float));
  }
  c.crc32c = c.payload.Crc32c();
  Random& random = context_->world.random();
  round_.Add(random.Between(0, kBlockMicros),
             [this, call, &block](int64_t hold, int64_t timeout,
                                  std::function<void(absl::Status)> done) {
               PushCall push = call;
               push.wait_micros = hold;
               if (context_->world.random().Chance(
                       context_->network.adversity().damage)) {
                 push.contribution.crc32c ^= 1;
                 ++context_->network.faults()["gradient damaged"];
               }
               context_->network.Call<WeightsSnapshot>(
                   process_, plan_.servers(block.shard), "push",
                   World::Kind::kWork, timeout,
                   [push](Process& server, Reply<WeightsSnapshot> reply) {
                     static_cast<SimulatedServer&>(server).PushPull(
                         push, std::move(reply));
                   },
                   [this, done, &block,
                    mine = timer_](absl::StatusOr<WeightsSnapshot> weights) {
                     if (ended_ || OfAnotherPhase(mine)) return;
                     if (!weights.ok()) return done(weights.status());
                     if (context_->scenario.sync == Scenario::Sync::kBulk &&
                         weights->version != step_ + 1) {
                       context_->world.Violate(absl::StrCat(
                           "rank ", *rank_, " gets version ", weights->version,
                           " for step ", step_ + 1));
                     }
                     done(TakeWeights(block, *std::move(weights)));
                   });
             });
}

}  // namespace tributary::simulation
