// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint_diff.h"

#include <cmath>
#include <limits>

#include "common/checkpoint/files/folder_name.h"
#include "tests/testing/checkpoint/checkpoint_files.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::CheckpointModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TensorDifference Compare(const std::vector<float>& a,
                         const std::vector<float>& b) {
  TensorDifference difference;
  CompareElements(a.data(), b.data(), static_cast<int64_t>(a.size()),
                  &difference);
  return difference;
}

// |2 - 3| / 3 = 1/3 and |-10 - -8| / 10 = 1/5.
TEST(CompareElementsTest, TheGreatestDifferencesNeedNotBeOfOneElement) {
  const TensorDifference difference = Compare({1, 2, -10}, {1, 3, -8});
  EXPECT_EQ(difference.different, 2);
  EXPECT_DOUBLE_EQ(difference.max_absolute, 2);
  EXPECT_DOUBLE_EQ(difference.max_relative, 1.0 / 3);
}

TEST(CompareElementsTest, BitsDecideWhatIsEqual) {
  EXPECT_EQ(
      Compare({kNan, kInfinity, -0.0f}, {kNan, kInfinity, -0.0f}).different, 0);
  const TensorDifference zeros = Compare({0.0f}, {-0.0f});
  EXPECT_EQ(zeros.different, 1);
  EXPECT_EQ(zeros.max_absolute, 0);
  EXPECT_EQ(zeros.max_relative, 0);
}

TEST(CompareElementsTest, WhatIsNoNumberDiffersInfinitely) {
  for (const float other : {1.0f, -kInfinity, kNan}) {
    const TensorDifference difference = Compare({kInfinity}, {other});
    EXPECT_EQ(difference.different, 1);
    EXPECT_TRUE(std::isinf(difference.max_absolute));
    EXPECT_TRUE(std::isinf(difference.max_relative));
  }
}

TEST(CompareElementsTest, GreatNumbersDoNotOverflow) {
  const float most = std::numeric_limits<float>::max();
  const TensorDifference difference = Compare({most}, {-most});
  EXPECT_DOUBLE_EQ(difference.max_absolute, 2 * double{most});
  EXPECT_DOUBLE_EQ(difference.max_relative, 2);
}

class CheckpointDiffTest : public testing::TemporaryFolderTest {
 protected:
  CheckpointDifference Compare(const CheckpointModel& b, int64_t step = 20,
                               int shards = 2) {
    TRIBUTARY_EXPECT_OK(CheckpointModel().Write(Path("a"), 20, 2));
    TRIBUTARY_EXPECT_OK(b.Write(Path("b"), step, shards));
    auto in_a = CheckpointReader::Open(Path("a/step-000000000020"));
    auto in_b =
        CheckpointReader::Open(Path("b") + "/" + CheckpointFolderName(step));
    EXPECT_TRUE(in_a.ok() && in_b.ok());
    auto difference = CompareCheckpoints(*std::move(in_a), *std::move(in_b));
    EXPECT_TRUE(difference.ok()) << difference.status();
    return *std::move(difference);
  }
};

TEST_F(CheckpointDiffTest, JobAndServersAreToldAndDoNotCount) {
  CheckpointModel other;
  other.job_id = 8;
  other.name = "large";
  const CheckpointDifference difference = Compare(other, 20, 3);
  EXPECT_TRUE(difference.equal());
  EXPECT_THAT(difference.remarks,
              ElementsAre("name: small and large", "job id: 7 and 8",
                          "servers: 2 and 3",
                          "job, modified: name: \"small\" -> \"large\""));
  EXPECT_EQ(difference.tensors.size(), 15u);
  EXPECT_THAT(DifferenceText(difference), HasSubstr("\nequal\n"));
}

TEST_F(CheckpointDiffTest, EveryElementOfEveryTensorIsCompared) {
  CheckpointModel other;
  other.offset = 0.5;
  const CheckpointDifference difference = Compare(other);
  EXPECT_FALSE(difference.equal());
  EXPECT_THAT(difference.differences, IsEmpty());
  ASSERT_EQ(difference.tensors.size(), 15u);
  for (const TensorDifference& tensor : difference.tensors) {
    EXPECT_EQ(tensor.different, tensor.elements) << tensor.name;
    EXPECT_EQ(tensor.max_absolute, 0.5) << tensor.name;
  }
  EXPECT_EQ(difference.tensors[0].max_relative, 1);  // 0 and 0.5
  EXPECT_EQ(difference.tensors[5].name, "optimizer.exp_avg.0.weight");
  EXPECT_THAT(DifferenceText(difference),
              HasSubstr("\ndifferent: 15 of 15 tensors\n"));
}

TEST_F(CheckpointDiffTest, SlicesAreComparedAsOneTensor) {
  CheckpointModel sliced;
  const ParameterSpec whole = sliced.parameters[2];  // [4, 3200]
  sliced.parameters.erase(sliced.parameters.begin() + 2);
  for (const int rank : {1, 0}) {
    sliced.parameters.insert(
        sliced.parameters.begin() + 2,
        {.name = rank == 0 ? "2.weight@0" : "2.weight@1",
         .shape = {2, 3200},
         .holders = {.tensor = rank},
         .whole_name = whole.name,
         .whole_shape = whole.shape,
         .slice = {.dim = 0, .begin = 2 * rank, .end = 2 * rank + 2}});
  }
  const CheckpointDifference difference = Compare(sliced);
  EXPECT_THAT(difference.differences, IsEmpty());
  ASSERT_EQ(difference.tensors.size(), 15u);
  EXPECT_EQ(difference.tensors[2].name, "2.weight");
  // The first slice has the elements of the whole tensor.
  EXPECT_EQ(difference.tensors[2].different, 6400);
}

TEST_F(CheckpointDiffTest, AnotherStepIsADifference) {
  const CheckpointDifference difference = Compare(CheckpointModel(), 30);
  EXPECT_FALSE(difference.equal());
  EXPECT_THAT(difference.differences,
              ElementsAre("step: 20 and 30", "epoch: 3 and 4",
                          "steps of the ranks: 20 20 and 30 30"));
  EXPECT_THAT(
      DifferenceText(difference),
      HasSubstr("\ndifferent: 0 of 15 tensors, and what stands above them\n"));
}

TEST_F(CheckpointDiffTest, TensorsOfOneSideAndOtherShapesAreNamed) {
  CheckpointModel other;
  other.parameters = {{"0.weight", {300, 100}},
                      {"0.bias", {301}},
                      {"2.weight", {4, 3200}},
                      {"6.bias", {4}}};
  other.state_names = {"exp_avg"};
  const CheckpointDifference difference = Compare(other);
  EXPECT_FALSE(difference.equal());
  const std::string text = DifferenceText(difference);
  EXPECT_THAT(text, HasSubstr("shapes: 0.bias [300] and 0.bias [301]\n"));
  EXPECT_THAT(text, HasSubstr("only in A: 2.bias [4]\n"));
  EXPECT_THAT(text, HasSubstr("only in B: 6.bias [4]\n"));
  EXPECT_THAT(text,
              HasSubstr("only in A: optimizer.exp_avg_sq.0.bias [300]\n"));
  EXPECT_EQ(difference.tensors.size(), 4u) << "0.weight and 2.weight, twice";
}

}  // namespace
}  // namespace tributary
