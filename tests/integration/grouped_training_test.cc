// SPDX-License-Identifier: Apache-2.0
// Parameter groups over real servers against torch.optim's, with rates from the
// schedule and with rates that come with each push.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/cluster.h"
#include "tests/testing/golden.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::Cluster;
using testing::GoldenCase;
using Tensors = std::vector<std::vector<float>>;

constexpr int kRanks = 2;

// The same as in tests/golden/scripts/make_groups.py.
const ParameterSpecs& Parameters() {
  static const auto* const all = new ParameterSpecs{
      {"0.weight", {12, 13}}, {"0.bias", {60}}, {"1.weight", {41}}};
  return *all;
}

Tensors Split(const std::vector<float>& all, size_t begin = 0) {
  Tensors tensors;
  for (const ParameterSpec& spec : Parameters()) {
    const auto at = all.begin() + static_cast<int64_t>(begin);
    tensors.emplace_back(at, at + spec.size());
    begin += static_cast<size_t>(spec.size());
  }
  return tensors;
}

template <typename T>
std::vector<T*> Pointers(Tensors& tensors) {
  std::vector<T*> pointers;
  for (std::vector<float>& tensor : tensors) pointers.push_back(tensor.data());
  return pointers;
}

class GroupedTrainingTest : public ::testing::TestWithParam<std::string> {
 protected:
  GroupedTrainingTest()
      : inputs_(testing::ReadGoldenGroup("optim").at("shared")),
        golden_(testing::ReadGoldenGroup("optim/groups").at(GetParam())),
        rates_(golden_.Tensor("lr").Doubles()),
        steps_(golden_.Tensor("lr").shape[0]) {}

  OptimizerOptions Optimizer(const char* decay) const {
    OptimizerOptions options =
        OptimizerOf(golden_.Text("op", ""), golden_.Number("lr", 0));
    options.weight_decay = golden_.Number(decay, 0);
    options.momentum = golden_.Number("momentum", 0);
    return options;
  }

  // Trains with this number of servers. sends: every push carries its learning
  // rates, which differ from those of the schedule.
  std::vector<float> Train(int servers, bool sends) {
    Cluster::Options options;
    options.parameters = Parameters();
    options.servers = servers;
    options.workers = kRanks;
    options.bucket_bytes = 256;
    options.optimizer = Optimizer("weight_decay");
    options.clip_norm = golden_.Number("clip_norm", 0);
    const auto rate = [this, sends](size_t group) {
      return [this, sends, group](int64_t step) {
        return sends ? 7.0 : rates_[2 * static_cast<size_t>(step) + group];
      };
    };
    options.learning_rate = rate(0);
    options.groups = {{.parameters = {"*.bias"},
                       .optimizer = Optimizer("group_weight_decay"),
                       .learning_rate = rate(1)},
                      {.parameters = {"1.*"},
                       .optimizer = Optimizer("weight_decay"),
                       .learning_rate = rate(0),
                       .frozen = true}};
    Cluster cluster(options);
    std::vector<Tensors> weights(kRanks, Split(inputs_.Tensor("w0").Floats()));
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([this, &cluster, &weights, rank, sends] {
        RunRank(*cluster.Connect(rank), rank, sends, &weights[rank]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(weights[0], weights[1]);
    std::vector<float> all;
    for (const auto& tensor : weights[0]) {
      all.insert(all.end(), tensor.begin(), tensor.end());
    }
    return all;
  }

  // Both ranks have the same gradient, which is therefore also the mean.
  void RunRank(ParameterClient& client, uint32_t rank, bool sends,
               Tensors* weights) {
    const std::vector<float*> into = Pointers<float>(*weights);
    if (rank == 0) {
      TRIBUTARY_ASSERT_OK(client.Initialize(Pointers<const float>(*weights)));
    }
    TRIBUTARY_ASSERT_OK(client.Pull({}, into));
    const std::vector<float> all = inputs_.Tensor("grads").Floats();
    for (int64_t step = 0; step < steps_; ++step) {
      const auto at = static_cast<size_t>(step);
      Tensors gradients = Split(all, at * all.size() / steps_);
      gradients[2][7] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<double> rates = {rates_[2 * at], rates_[2 * at + 1], 0};
      const std::vector<const float*> from = Pointers<const float>(gradients);
      client.BeginStep(step, /*samples=*/4, from, into,
                       sends ? rates : std::vector<double>());
      for (int shard = 0; shard < client.partition().num_shards(); ++shard) {
        for (const Block& block : client.partition().blocks(shard)) {
          client.PushPull(block);
        }
      }
      TRIBUTARY_ASSERT_OK(client.FinishStep());
      EXPECT_FALSE(client.skipped());
    }
  }

  const GoldenCase inputs_, golden_;
  const std::vector<double> rates_;  // [step, group]
  const int64_t steps_;
};

TEST_P(GroupedTrainingTest, GivesTheWeightsOfPyTorch) {
  const std::vector<float> scheduled = Train(/*servers=*/2, /*sends=*/false);
  EXPECT_LE(golden_.ErrorOverTolerance("w", scheduled), 1);
  EXPECT_EQ(Train(2, /*sends=*/true), scheduled);
  EXPECT_EQ(Train(1, /*sends=*/true), scheduled);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GroupedTrainingTest,
                         ::testing::Values("sgd", "sgd_clipped", "momentum",
                                           "momentum_clipped", "adamw",
                                           "adamw_clipped"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tributary
