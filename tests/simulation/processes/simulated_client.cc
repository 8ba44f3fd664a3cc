// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/simulated_client.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/wire/crc32c/crc32c.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

constexpr absl::Duration kStepTimeout = absl::Seconds(120);
// Time between the blocks of a step.
constexpr int64_t kBlockMicros = 300;

std::vector<float> Gather(const Block& block, const Tensors& tensors) {
  std::vector<const float*> pointers;
  for (const std::vector<float>& t : tensors) pointers.push_back(t.data());
  std::vector<float> values(block.size);
  PartitionPlan::Gather(block, pointers, values.data());
  return values;
}

}  // namespace

void SimulatedClient::Begin(const v1::Plan& plan, const Rank& rank) {
  Drop();
  plan_ = plan;
  rank_ = rank;
  cut_ = context_->model.Cut(plan.servers_size());
  weights_ = context_->model.Initial();  // for the shapes
  versions_.clear();
}

void SimulatedClient::Drop() {
  ++round_;
  open_ = calling_ = 0;
  done_ = nullptr;
}

void SimulatedClient::After(absl::Duration pause, std::function<void()> then) {
  context_->world.After(absl::ToInt64Microseconds(pause), process_,
                        World::Kind::kWork,
                        [this, mine = round_, then = std::move(then)] {
                          if (mine == round_) then();
                        });
}

template <typename Request, typename T>
void SimulatedClient::Call(const char* what, absl::Duration timeout,
                           Method<Request, T> method, const Request& request,
                           std::type_identity_t<Reply<T>> done) {
  ++calling_;
  context_->network.Call(
      process_, plan_.servers(static_cast<int>(request.address.shard())), what,
      World::Kind::kWork, absl::ToInt64Microseconds(timeout), method, request,
      [this, mine = round_, done = std::move(done)](absl::StatusOr<T> answer) {
        const bool late = mine != round_;
        if (late && (open_ == 0 || !TRIBUTARY_MUTATED("late-reply-accepted"))) {
          return;
        }
        --calling_;
        done(std::move(answer));
      });
}

// ---- progress

void SimulatedClient::ReadProgress(Reply<RankProgress> done) {
  open_ = 1;
  progress_deadline_ = Now() + kStepTimeout;
  ReadProgressOf(0, RankProgress(), std::move(done));
}

void SimulatedClient::ReadProgressOf(int shard, RankProgress sum,
                                     Reply<RankProgress> done) {
  while (shard < cut_->num_shards() && cut_->blocks(shard).empty()) ++shard;
  if (shard == cut_->num_shards()) {
    open_ = 0;
    return done(sum);
  }
  Call("read clock", TransferLedger::kProgressTimeout,
       &SimulatedServer::ReadClock,
       {AddressOf(cut_->blocks(shard)[0]), rank_.index, rank_.incarnation,
        rank_.recomputes},
       [=, this](absl::StatusOr<RankProgress> part) mutable {
         if (part.ok()) {
           sum.Add({part->initialized, part->steps, part->begun});
           return ReadProgressOf(shard + 1, sum, done);
         }
         if (RetryPolicy::After(part.status(), progress_deadline_ - Now()) !=
             RetryPolicy::Next::kRetry) {
           return done(part.status());
         }
         After(TransferLedger::kProgressPause,
               [=, this] { ReadProgressOf(shard, sum, done); });
       });
}

// ---- rounds

void SimulatedClient::BeginRound(Done done) {
  Drop();
  ledger_.Begin(Now(), kStepTimeout);
  newest_version_ = 0;
  done_ = std::move(done);
}

template <typename Request, typename T>
void SimulatedClient::Start(int64_t delay_micros,
                            Transfer<Request, T> transfer) {
  ledger_.Add();
  ++open_;
  After(absl::Microseconds(delay_micros),
        [this, t = std::make_shared<Transfer<Request, T>>(
                   std::move(transfer))] { Try(t, 0); });
}

template <typename Request, typename T>
void SimulatedClient::Try(const std::shared_ptr<Transfer<Request, T>>& transfer,
                          int failures) {
  const absl::Duration hold = ledger_.HoldFor(Now());
  Request request = transfer->request;
  request.wait_micros = absl::ToInt64Microseconds(hold);
  if constexpr (std::is_same_v<Request, PushCall>) {
    if (context_->network.Damages("gradient damaged")) {
      request.contribution.crc32c ^= 1;
    }
  }
  Call(transfer->what, hold + TransferLedger::kPolicy.margin, transfer->method,
       request, [this, transfer, failures](absl::StatusOr<T> answer) {
         const absl::Status status =
             answer.ok() ? transfer->receive(*answer) : answer.status();
         const auto pause =
             ledger_.After(status, transfer->what, failures,
                           context_->world.random().Uniform(), Now());
         if (pause) {
           return After(*pause, [this, transfer, failures] {
             Try(transfer, failures + 1);
           });
         }
         --open_;
         if (!ledger_.over() && ledger_.status().ok()) return;
         const Done done = std::move(done_);
         Drop();  // the other transfers of a round that has failed
         if (done) done(ledger_.status());
       });
}

void SimulatedClient::Initialize(Done done) {
  BeginRound(std::move(done));
  ForEachBlock([&](const Block& block) {
    Start<FirstWeights, Nothing>(
        0, {&SimulatedServer::Initialize,
            {AddressOf(block), Gather(block, context_->model.Initial())},
            "initialize",
            [](Nothing) { return absl::OkStatus(); }});
  });
}

void SimulatedClient::Pull(const WantedWeights& wanted, Done done) {
  BeginRound(std::move(done));
  PullCall call;
  call.exact = wanted.kind == WantedWeights::Kind::kExactly;
  if (wanted.kind == WantedWeights::Kind::kFinished) {
    call.reader = Reader{rank_.index, wanted.number};
  } else {
    call.version = wanted.number;
  }
  ForEachBlock([&](const Block& block) {
    call.address = AddressOf(block);
    Start<PullCall, WeightsSnapshot>(
        0, {&SimulatedServer::Pull, call, "pull",
            [this, block](const WeightsSnapshot& weights) {
              return TakeWeights(block, weights);
            }});
  });
}

void SimulatedClient::PushPull(int64_t step, const Tensors& gradient,
                               Done done) {
  BeginRound(std::move(done));
  step_ = step;
  PushCall call;
  Contribution& c = call.contribution;
  c.rank = rank_.index;
  c.incarnation = rank_.incarnation;
  c.step = step;
  c.samples = context_->model.Samples(rank_.index, step);
  if (context_->scenario.adds_early) {
    c.total_samples = context_->model.AllSamples(step);
  }
  ForEachBlock([&](const Block& block) {
    call.address = AddressOf(block);
    if (c.samples > 0) {
      const std::vector<float> values = Gather(block, gradient);
      c.payload = Payload::Copy(values.data(), values.size() * sizeof(float));
    }
    c.crc32c = c.payload.ScanFloats().crc32c;
    Start<PushCall, WeightsSnapshot>(
        context_->world.random().Between(0, kBlockMicros),
        {&SimulatedServer::PushPull, call, "push",
         [this, block](const WeightsSnapshot& weights) {
           if (context_->scenario.sync == Scenario::Sync::kBulk &&
               weights.version != step_ + 1) {
             context_->world.Violate(
                 absl::StrCat("rank ", rank_.index, " gets version ",
                              weights.version, " for step ", step_ + 1));
           }
           return TakeWeights(block, weights);
         }});
  });
}

absl::Status SimulatedClient::TakeWeights(const Block& block,
                                          const WeightsSnapshot& weights) {
  if (context_->network.Damages("answer damaged")) {
    return absl::DataLossError("weights were damaged on the way");
  }
  if (Crc32c(weights.weights.data(), block.bytes()) != weights.crc32c) {
    context_->world.Violate("an answer's weights changed on their way");
  }
  newest_version_ = std::max(newest_version_, weights.version);
  versions_[{block.shard, block.index}] = weights.version;
  std::vector<float*> tensors;
  for (std::vector<float>& tensor : weights_) tensors.push_back(tensor.data());
  PartitionPlan::Scatter(block, weights.weights.data(),
                         absl::MakeConstSpan(tensors));
  return absl::OkStatus();
}

int64_t SimulatedClient::oldest_version() const {
  int64_t oldest = INT64_MAX;
  for (const auto& [block, version] : versions_) {
    oldest = std::min(oldest, version);
  }
  return oldest;
}

}  // namespace tributary::simulation
