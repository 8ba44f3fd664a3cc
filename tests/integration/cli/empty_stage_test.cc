// SPDX-License-Identifier: Apache-2.0
// A pipeline in which one stage has no parameters: the rank of this stage has
// no block at any server.
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/paths.h"
#include "tests/testing/process.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

class EmptyStageTest : public testing::TemporaryFolderTest {
 protected:
  // Returns the final weights of a run with this strategy.
  std::string Weights(const std::string& run, const std::string& strategy) {
    Write(run + ".yaml", R"(name: empty-stage
model: {sequential: [{linear: {in: 16, out: 1}}, tanh]}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 200}}
  batch_size: 20
training: {epochs: 2, loss: mse, optimizer: {sgd: {learning_rate: 0.1}}}
cluster: {servers: 1, workers: 2}
strategy: )" + strategy + "\n");
    const testing::ProcessResult result =
        testing::RunProcess({testing::Program("tributary"), "train",
                             Path(run + ".yaml"), "--run-dir", Path(run)});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return Read(run + "/weights.safetensors");
  }
};

TEST_F(EmptyStageTest, ItTrainsOverServersAndAmongTheRanksToTheSameBits) {
  const std::string served =
      Weights("served", "{pipeline_parallel: {stages: 2, micro_batches: 2}}");
  ASSERT_FALSE(served.empty());
  EXPECT_EQ(served, Weights("reduced",
                            "{pipeline_parallel: {stages: 2, micro_batches: "
                            "2}, all_reduce: {}}"));
}

}  // namespace
}  // namespace tributary
