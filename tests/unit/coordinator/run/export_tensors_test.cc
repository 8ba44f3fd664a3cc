// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/export_tensors.h"

#include <gmock/gmock.h>

#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

// The checkpoint of two tensor ranks, each with two columns of a weight of
// [2, 4]. Its values are 0 to 3 in the first slice, 100000 to 100003 in the
// second, and 0.25 more in the optimizer's state.
class ExportTensorsTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    model_.parameters.clear();
    for (const int rank : {0, 1}) {
      model_.parameters.push_back(
          {.name = rank == 0 ? "0.weight@0" : "0.weight@1",
           .shape = {2, 2},
           .holders = {.tensor = rank},
           .whole_name = "0.weight",
           .whole_shape = {2, 4},
           .slice = {.dim = 1, .begin = 2 * rank, .end = 2 * rank + 2}});
    }
    model_.parameters.push_back({.name = "0.bias", .shape = {2}});
    model_.state_names = {"exp_avg"};
    TRIBUTARY_EXPECT_OK(model_.Write(folder(), 20, 2));
  }
  absl::StatusOr<ExportedTensors> Export(bool with_state) {
    auto reader = CheckpointReader::Open(Path("step-000000000020"));
    if (!reader.ok()) return reader.status();
    return ExportTensors(*std::move(reader), with_state, Path("out"));
  }

  testing::CheckpointModel model_;
  const ParameterSpecs whole_ = {{"0.weight", {2, 4}}, {"0.bias", {2}}};
  const std::vector<float> weight_ = {0, 1, 100000, 100001,
                                      2, 3, 100002, 100003};
};

TEST_F(ExportTensorsTest, TheSlicesOfAWeightAreJoined) {
  const auto exported = Export(/*with_state=*/false);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->tensors, 2u);
  const auto written = ReadSafetensors(Path("out"), whole_);
  ASSERT_TRUE(written.ok()) << written.status();
  const std::vector<float> bias = {200000, 200001};
  EXPECT_THAT(*written, ElementsAre(weight_, bias));
  Sha256 sha256;
  sha256.Update(weight_.data(), weight_.size() * sizeof(float));
  sha256.Update(bias.data(), bias.size() * sizeof(float));
  EXPECT_EQ(exported->weights_sha256, sha256.HexDigest());
}

TEST_F(ExportTensorsTest, TheOptimizersStateFollowsInWholeTensorsToo) {
  const auto exported = Export(/*with_state=*/true);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->tensors, 4u);
  ParameterSpecs specs = whole_;
  for (const ParameterSpec& spec : whole_) {
    specs.push_back({"optimizer.exp_avg." + spec.name, spec.shape});
  }
  const auto written = ReadSafetensors(Path("out"), specs);
  ASSERT_TRUE(written.ok()) << written.status();
  std::vector<float> average = weight_;
  for (float& value : average) value += 0.25f;
  EXPECT_EQ((*written)[0], weight_);
  EXPECT_EQ((*written)[2], average);
}

}  // namespace
}  // namespace tributary
