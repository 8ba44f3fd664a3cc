// SPDX-License-Identifier: Apache-2.0
#include "common/plan/model_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

// Tensor rank 0 has rows 0 and 1 of "1.weight", rank 1 has row 2; each has one
// of the two columns of "3.weight". All of stage 0 hold "0.weight".
ParameterSpecs Planned() {
  return {{.name = "0.weight", .shape = {2}, .holders = {0, -1}},
          {.name = "1.weight@0",
           .shape = {2, 2},
           .holders = {0, 0},
           .whole_name = "1.weight",
           .whole_shape = {3, 2},
           .slice = {.dim = 0, .begin = 0, .end = 2}},
          {.name = "1.weight@1",
           .shape = {1, 2},
           .holders = {0, 1},
           .whole_name = "1.weight",
           .whole_shape = {3, 2},
           .slice = {.dim = 0, .begin = 2, .end = 3}},
          {.name = "3.weight@0",
           .shape = {2, 1},
           .holders = {1, 0},
           .whole_name = "3.weight",
           .whole_shape = {2, 2},
           .slice = {.dim = 1, .begin = 0, .end = 1}},
          {.name = "3.weight@1",
           .shape = {2, 1},
           .holders = {1, 1},
           .whole_name = "3.weight",
           .whole_shape = {2, 2},
           .slice = {.dim = 1, .begin = 1, .end = 2}}};
}

const DeviceMesh kMesh = {.data = 2, .stages = 2, .tensor = 2};

TEST(ModelCutTest, SlicesMakeTheWholeAndTheWholeTheSlices) {
  EXPECT_THAT(WholeParameters(Planned()),
              ElementsAre(ParameterSpec{"0.weight", {2}},
                          ParameterSpec{"1.weight", {3, 2}},
                          ParameterSpec{"3.weight", {2, 2}}));
  const Tensors whole = {{1, 2}, {3, 4, 5, 6, 7, 8}, {9, 10, 11, 12}};
  const Tensors cut = CutWhole(Planned(), whole);
  EXPECT_THAT(cut, ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4, 5, 6),
                               ElementsAre(7, 8), ElementsAre(9, 11),
                               ElementsAre(10, 12)));
  EXPECT_EQ(AssembleWhole(Planned(), cut), whole);
}

TEST(ModelCutTest, ARankFindsWhatItHoldsByTheWholeNames) {
  const ParameterSpecs own = {{"0.weight", {2}}, {"1.weight", {1, 2}}};
  const auto places =
      PlacesInPlan(own, Planned(), kMesh, kMesh.RankOf({1, 0, 1}));
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_THAT(*places, ElementsAre(0, 2));
  EXPECT_THAT(PlacesInPlan(own, Planned(), kMesh, kMesh.RankOf({1, 0, 0})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "rank 4 has a parameter 1.weight of 2 elements; the "
                       "plan gives it 4"));
  EXPECT_THAT(PlacesInPlan(own, Planned(), kMesh, kMesh.RankOf({1, 1, 0})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "the plan gives it none of this name"));
  EXPECT_THAT(PlacesInPlan({{"0.weight", {2}}}, Planned(), kMesh, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "rank 0 has 1 parameters, the plan gives it 2"));
}

TEST(DeviceMeshTest, RanksAndPlacesAreTheSameThing) {
  EXPECT_EQ(kMesh.size(), 8);
  for (int rank = 0; rank < kMesh.size(); ++rank) {
    EXPECT_EQ(kMesh.RankOf(kMesh.PlaceOf(rank)), rank);
  }
  // The tensor rank is the fastest, data the slowest.
  EXPECT_EQ(kMesh.PlaceOf(6), (DeviceMesh::Place{1, 1, 0}));
  EXPECT_TRUE(kMesh.Holds(6, {.stage = 1, .tensor = -1}));
  EXPECT_TRUE(kMesh.Holds(6, {.stage = -1, .tensor = 0}));
  EXPECT_FALSE(kMesh.Holds(6, {.stage = 1, .tensor = 1}));
  EXPECT_EQ(FirstHolder({.stage = 1, .tensor = -1}, kMesh), 2);
  EXPECT_EQ(FirstHolder({}, kMesh), 0);
}

}  // namespace
}  // namespace tributary
