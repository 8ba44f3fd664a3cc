// SPDX-License-Identifier: Apache-2.0
// Error feedback over real gRPC: the sums at the servers and the residuals at
// the workers together are all that was computed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/testing/cluster.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::Cluster;
using testing::StatusIs;
using testing::ToyModel;

class ErrorFeedbackTest : public ::testing::TestWithParam<v1::WireFormat> {
 protected:
  // Plain SGD with rate 1: a step subtracts the gradient that was decoded.
  static Cluster::Options MakeOptions(int servers) {
    Cluster::Options options;
    options.parameters = {{"w", {100, 70}}, {"b", {70}}};
    options.servers = servers;
    options.optimizer.learning_rate = 1;
    options.wire = GetParam();
    options.error_feedback = true;
    return options;
  }
  static absl::Status Step(ParameterClient& client, ToyModel& model,
                           int64_t step, uint64_t samples) {
    const auto gradients = model.Gradients();
    client.BeginStep(step, samples, gradients, model.Weights());
    for (int shard = 0; shard < client.partition().num_shards(); ++shard) {
      for (const Block& block : client.partition().blocks(shard)) {
        client.PushPull(block);
      }
    }
    return client.FinishStep();
  }
};

TEST_P(ErrorFeedbackTest, WeightsAndResidualsHoldAllGradients) {
  for (const int servers : {1, 3}) {
    Cluster cluster(MakeOptions(servers));
    ToyModel model(cluster.options().parameters);
    auto client = cluster.Connect(0);
    TRIBUTARY_ASSERT_OK(client->Initialize(model.ConstWeights()));
    std::vector<std::vector<float>> wanted = model.weights;
    for (int64_t step = 0; step < 10; ++step) {
      model.Compute(0, step);
      TRIBUTARY_ASSERT_OK(Step(*client, model, step, 1));
      for (size_t p = 0; p < wanted.size(); ++p) {
        const float* const residual = client->residuals()[p];
        for (size_t i = 0; i < wanted[p].size(); ++i) {
          wanted[p][i] -= model.gradients[p][i];
          ASSERT_NEAR(model.weights[p][i] - residual[i], wanted[p][i], 1e-4);
        }
      }
    }
    EXPECT_NE(*client->residuals()[0], 0);
  }
}

TEST_P(ErrorFeedbackTest, AStepWithoutSamplesKeepsTheResidual) {
  Cluster cluster(MakeOptions(2));
  ToyModel model(cluster.options().parameters);
  auto client = cluster.Connect(0);
  TRIBUTARY_ASSERT_OK(client->Initialize(model.ConstWeights()));
  const auto residual = [&client] {
    return std::vector<float>(client->residuals()[0],
                              client->residuals()[0] + 7000);
  };
  model.Compute(0, 0);
  TRIBUTARY_ASSERT_OK(Step(*client, model, 0, 1));
  const std::vector<float> before = residual();
  TRIBUTARY_ASSERT_OK(Step(*client, model, 1, 0));
  EXPECT_EQ(residual(), before);
  TRIBUTARY_ASSERT_OK(Step(*client, model, 2, 1));
  EXPECT_NE(residual(), before);
}

TEST_P(ErrorFeedbackTest, AGradientThatIsNotFiniteIsRefused) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    Cluster cluster(MakeOptions(1));
    ToyModel model(cluster.options().parameters);
    auto client = cluster.Connect(0);
    TRIBUTARY_ASSERT_OK(client->Initialize(model.ConstWeights()));
    model.Compute(0, 0);
    TRIBUTARY_ASSERT_OK(Step(*client, model, 0, 1));
    model.gradients[0][3000] = bad;
    EXPECT_THAT(Step(*client, model, 1, 1),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "the gradient of rank 0 for step 2 is not finite in "
                         "\"w\", element 3000"));
    for (int i = 0; i < 7000; ++i) {
      ASSERT_TRUE(std::isfinite(client->residuals()[0][i]));
    }
  }
}

TEST_P(ErrorFeedbackTest, WithoutItThereAreNoResiduals) {
  Cluster::Options options = MakeOptions(1);
  options.error_feedback = false;
  Cluster cluster(options);
  EXPECT_TRUE(cluster.Connect(0)->residuals().empty());
}

INSTANTIATE_TEST_SUITE_P(Formats, ErrorFeedbackTest,
                         ::testing::Values(v1::WIRE_FORMAT_INT8,
                                           v1::WIRE_FORMAT_TOP_K,
                                           v1::WIRE_FORMAT_ONE_BIT),
                         [](const auto& info) {
                           return v1::WireFormat_Name(info.param);
                         });

}  // namespace
}  // namespace tributary
