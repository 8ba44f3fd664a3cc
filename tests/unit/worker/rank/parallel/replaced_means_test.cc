// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/parallel/replaced_means.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/sample_weights.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "tests/testing/status_matchers.h"
#include "worker/rank/collective/mesh.h"
#include "worker/rank/collective/peer_communicator.h"

namespace tributary {
namespace {

class Memory final : public ParameterMemory {
 public:
  explicit Memory(float value)
      : gradients_{{1, 2}, std::vector<float>(5, value)} {}
  const ParameterSpecs& parameters() const override { return specs_; }
  float* weight(int i) override { return weights_[i].data(); }
  float* gradient(int i) override { return gradients_[i].data(); }

 private:
  const ParameterSpecs specs_ = {
      {"weight", {2}}, {.name = "mean", .shape = {5}, .running_momentum = 1}};
  std::vector<std::vector<float>> weights_ = {{0, 0}, std::vector<float>(5, 8)};
  std::vector<std::vector<float>> gradients_;
};
// The means at the last rank, after a reduction that has overwritten the ranks'
// values: 0.1 (rank + 1), or 0.1 each if `equal`.
std::vector<float> MeansOf(ReplacedMean how, bool equal,
                           const std::vector<uint64_t>& samples) {
  const int ranks = static_cast<int>(samples.size());
  std::vector<std::unique_ptr<Mesh>> meshes = CreateInProcessMesh(ranks);
  std::vector<float> first;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const std::unique_ptr<Ops> ops = CreateCpuOps();
      PeerCommunicator group({.mesh = std::move(meshes[r]), .ops = ops.get()});
      Memory memory(equal ? 0.1f : 0.1f * static_cast<float>(r + 1));
      ReplacedMeans means(how, &group, &memory, /*chunk=*/2);
      TRIBUTARY_EXPECT_OK(means.Compute(0, 1, SampleWeights(samples)));
      std::fill_n(memory.gradient(1), 5, -1.0f);
      means.Put();
      EXPECT_EQ(memory.gradient(0)[1], 2);
      if (r == ranks - 1)
        first.assign(memory.gradient(1), memory.gradient(1) + 5);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first;
}

TEST(ReplacedMeansTest, TheMeanOfEqualValuesIsThisValue) {
  EXPECT_EQ(MeansOf(ReplacedMean::kExact, /*equal=*/true, {1, 1, 1}),
            std::vector<float>(5, 0.1f));
  EXPECT_EQ(MeansOf(ReplacedMean::kExact, /*equal=*/true, {3, 0, 5, 7, 1}),
            std::vector<float>(5, 0.1f));
}

TEST(ReplacedMeansTest, OtherwiseItIsTheMeanBySamples) {
  for (const float mean :
       MeansOf(ReplacedMean::kExact, /*equal=*/false, {1, 0, 3})) {
    EXPECT_FLOAT_EQ(mean, 0.25f);
  }
}

TEST(ReplacedMeansTest, WithoutSamplesTheOldValuesStay) {
  EXPECT_EQ(MeansOf(ReplacedMean::kExact, /*equal=*/false, {0, 0}),
            std::vector<float>(5, 8.0f));
}

TEST(ReplacedMeansTest, Rank0sValueOrTheOldOne) {
  EXPECT_EQ(MeansOf(ReplacedMean::kOfRank0, /*equal=*/false, {1, 9}),
            std::vector<float>(5, 0.1f));
  EXPECT_EQ(MeansOf(ReplacedMean::kOfRank0, /*equal=*/false, {0, 9}),
            std::vector<float>(5, 8.0f));
}

TEST(ReplacedMeansTest, GradientsAreLeftToTheReduction) {
  EXPECT_EQ(MeansOf(ReplacedMean::kAsGradients, /*equal=*/true, {1, 1}),
            std::vector<float>(5, -1.0f));
}

}  // namespace
}  // namespace tributary
