// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "tests/testing/status_matchers.h"

namespace tributary::testing {
namespace {

// Odd ranks have no network thread, rank 0 has one and rank 2 three.
ParameterClient::ForTests NetworkThreadsOf(
    uint32_t rank, std::function<int64_t()> delay_micros) {
  return {.thread_from_bytes = rank % 2 == 0 ? 0 : 1 << 30,
          .network_threads = rank % 4 == 2 ? 3 : 1,
          .delay_micros = std::move(delay_micros)};
}

}  // namespace

Cluster::Cluster(const Options& options)
    : options_(options), ops_(CreateCpuOps()) {
  plan_.set_job_id(77);
  plan_.set_epoch(1);
  plan_.set_bucket_bytes(options.bucket_bytes);
  plan_.set_unanswered_blocks(options.unanswered_blocks);
  plan_.set_wire(options.wire);
  plan_.set_weights_wire(options.weights_wire);
  plan_.set_top_k_fraction(options.top_k_fraction);
  plan_.set_error_feedback(options.error_feedback);
  plan_.set_num_workers(options.workers);
  ToProto(options.parameters, plan_.mutable_parameters());
  for (int s = 0; s < options.servers; ++s) {
    auto server = ParameterServer::Start({});
    TRIBUTARY_EXPECT_OK(server);
    plan_.add_servers(absl::StrCat("127.0.0.1:", (*server)->port()));
    servers_.push_back(*std::move(server));
  }
  Serve();
}

void Cluster::StartOver() {
  plan_.set_epoch(plan_.epoch() + 1);
  Serve();
}

void Cluster::Serve() {
  for (int s = 0; s < options_.servers; ++s) {
    const double rate = options_.optimizer.learning_rate;
    ShardSetup setup;
    setup.shard = s;
    setup.training.optimizer = options_.optimizer;
    setup.training.learning_rate = options_.learning_rate
                                       ? options_.learning_rate
                                       : [rate](int64_t) { return rate; };
    setup.training.groups = options_.groups;
    setup.training.clip_norm = options_.clip_norm;
    setup.training.policy = options_.policy
                                ? options_.policy()
                                : std::make_unique<BulkSynchronous>();
    setup.training.summation.version = options_.sum_and_update;
    setup.ops = ops_.get();
    setup.shares_memory = options_.shares_memory;
    TRIBUTARY_EXPECT_OK(servers_[s]->Serve(
        plan_, MakePartitionPlan(plan_).value(), std::move(setup)));
  }
}

Cluster::~Cluster() {
  for (auto& server : servers_) server->Shutdown();
}

std::unique_ptr<ParameterClient> Cluster::Connect(
    uint32_t rank, std::function<int64_t()> delay_micros,
    absl::Duration step_timeout) {
  auto client = ParameterClient::Connect(
      {.plan = plan_,
       .rank = rank,
       .incarnation = 1,
       .step_timeout = step_timeout,
       .on_waiting = nullptr,
       .for_tests = NetworkThreadsOf(rank, std::move(delay_micros))});
  TRIBUTARY_EXPECT_OK(client);
  return *std::move(client);
}

std::unique_ptr<ParameterClient> Cluster::Connect(
    uint32_t rank, std::shared_ptr<SharedArena> memory) {
  auto client = ParameterClient::Connect(
      {.plan = plan_,
       .rank = rank,
       .incarnation = 1,
       .step_timeout = absl::Seconds(30),
       .transport = Transport::kSharedMemory,
       .gradient_memory = std::move(memory),
       .for_tests = NetworkThreadsOf(rank, /*delay_micros=*/nullptr)});
  TRIBUTARY_EXPECT_OK(client);
  return *std::move(client);
}

ToyModel::ToyModel(const ParameterSpecs& specs) {
  for (const ParameterSpec& spec : specs) {
    std::vector<float> start(spec.size());
    for (size_t i = 0; i < start.size(); ++i) {
      start[i] = std::sin(0.37f * static_cast<float>(i) +
                          static_cast<float>(weights.size()));
    }
    weights.push_back(start);
    gradients.emplace_back(start.size());
  }
}

void ToyModel::Compute(uint32_t rank, int64_t step) {
  for (size_t p = 0; p < weights.size(); ++p) {
    for (size_t i = 0; i < weights[p].size(); ++i) {
      gradients[p][i] =
          weights[p][i] * 0.3f +
          std::cos(0.11f * static_cast<float>(i) + 1.7f * (rank + 1) +
                   0.9f * static_cast<float>(step));
    }
  }
}

std::vector<const float*> ToyModel::Gradients() const {
  std::vector<const float*> pointers;
  for (const auto& tensor : gradients) pointers.push_back(tensor.data());
  return pointers;
}
std::vector<float*> ToyModel::Weights() {
  std::vector<float*> pointers;
  for (auto& tensor : weights) pointers.push_back(tensor.data());
  return pointers;
}
std::vector<const float*> ToyModel::ConstWeights() const {
  std::vector<const float*> pointers;
  for (const auto& tensor : weights) pointers.push_back(tensor.data());
  return pointers;
}

namespace {

// Copies of tensors in an arena.
class SharedCopies {
 public:
  SharedCopies(std::shared_ptr<SharedArena> arena,
               const std::vector<std::vector<float>>& tensors) {
    for (const auto& tensor : tensors) {
      copies_.emplace_back(static_cast<int64_t>(tensor.size()), /*stagger=*/0,
                           arena);
    }
  }
  void Fill(const std::vector<std::vector<float>>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::copy(tensors[i].begin(), tensors[i].end(), copies_[i].data());
    }
  }
  std::vector<const float*> pointers() const {
    std::vector<const float*> pointers;
    for (const SharedBuffer& copy : copies_) pointers.push_back(copy.data());
    return pointers;
  }

 private:
  std::vector<SharedBuffer> copies_;
};

// arena: for the gradients; or null.
void RunWorker(ParameterClient& client, std::shared_ptr<SharedArena> arena,
               ToyModel& model, uint32_t rank, int64_t steps,
               const std::function<uint64_t(uint32_t, int64_t)>& samples) {
  SharedCopies copies(arena, model.gradients);
  if (arena) TRIBUTARY_EXPECT_OK(client.ReadProgress());
  if (rank == 0) {
    TRIBUTARY_EXPECT_OK(client.Initialize(model.ConstWeights()));
  }
  const std::vector<float*> weights = model.Weights();
  const std::vector<const float*> gradients =
      arena ? copies.pointers() : model.Gradients();
  TRIBUTARY_EXPECT_OK(client.Pull({}, weights));
  for (int64_t step = 0; step < steps; ++step) {
    model.Compute(rank, step);
    copies.Fill(model.gradients);
    client.BeginStep(step, samples(rank, step), gradients, weights);
    for (int s = 0; s < client.partition().num_shards(); ++s) {
      for (const Block& block : client.partition().blocks(s)) {
        client.PushPull(block);
      }
    }
    const absl::Status status = client.FinishStep();
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return;
  }
}

}  // namespace

std::vector<std::vector<float>> TrainToy(
    const Cluster::Options& options, int64_t steps, const Samples& samples,
    const std::function<std::function<int64_t()>(uint32_t rank)>& delays) {
  Cluster cluster(options);
  return TrainToy(cluster, steps, samples, delays);
}

std::vector<std::vector<float>> TrainToy(
    Cluster& cluster, int64_t steps, const Samples& samples,
    const std::function<std::function<int64_t()>(uint32_t rank)>& delays) {
  const Cluster::Options& options = cluster.options();
  std::vector<ToyModel> models(options.workers, ToyModel(options.parameters));
  std::vector<std::thread> threads;
  for (int r = 0; r < options.workers; ++r) {
    const uint32_t rank = static_cast<uint32_t>(r);
    threads.emplace_back([&, rank] {
      std::shared_ptr<SharedArena> arena;
      if (options.shares_memory) {
        arena = SharedArena::Create(1 << 20).value();
      }
      auto client =
          arena ? cluster.Connect(rank, arena)
                : cluster.Connect(rank, delays ? delays(rank) : nullptr);
      RunWorker(*client, arena, models[rank], rank, steps, samples);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ToyModel& model : models) {
    EXPECT_EQ(model.weights, models[0].weights) << "workers disagree";
  }
  return models[0].weights;
}

}  // namespace tributary::testing
