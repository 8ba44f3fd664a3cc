// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/put_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/wire/crc32c/crc32c.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::StatusIs;

v1::PutWeightsRequest Piece(uint32_t parameter, uint64_t offset,
                            const std::vector<float>& values,
                            int64_t step = 8) {
  v1::PutWeightsRequest request;
  request.set_step(step);
  request.set_parameter(parameter);
  request.set_offset(offset);
  request.set_payload(values.data(), values.size() * sizeof(float));
  request.set_crc32c(
      Crc32c(request.payload().data(), request.payload().size()));
  return request;
}

class PutWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override { weights_.Begin({{"a", {4}}, {"b", {2}}}); }

  PutWeights weights_;
};

TEST_F(PutWeightsTest, PiecesInOrderMakeTheModel) {
  TRIBUTARY_EXPECT_OK(weights_.Put(Piece(0, 0, {1, 2, 3})));
  TRIBUTARY_EXPECT_OK(weights_.Put(Piece(0, 0, {1, 2, 3})));  // again
  TRIBUTARY_EXPECT_OK(weights_.Put(Piece(0, 3, {4})));
  EXPECT_FALSE(weights_.complete());
  TRIBUTARY_EXPECT_OK(weights_.Put(Piece(1, 0, {5, 6})));
  ASSERT_TRUE(weights_.complete());
  TRIBUTARY_EXPECT_OK(
      weights_.Put(Piece(1, 0, {5, 6})));  // the answer was lost
  EXPECT_EQ(weights_.weights().step, 8);
  EXPECT_THAT(weights_.weights().tensors,
              ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(5, 6)));
}

TEST_F(PutWeightsTest, WhatIsNotNextIsRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  TRIBUTARY_EXPECT_OK(weights_.Put(Piece(0, 0, {1, 2})));
  EXPECT_THAT(weights_.Put(Piece(1, 1, {6})),
              StatusIs(absl::StatusCode::kOutOfRange,
                       "the next piece of parameter 1 is from element "
                       "0 on, got element 1"));
  EXPECT_THAT(weights_.Put(Piece(0, 2, {3, 4}, 9)),
              StatusIs(invalid, "weights of step 8 are coming, got step 9"));
  EXPECT_THAT(weights_.Put(Piece(0, 2, {3, 4, 5})),
              StatusIs(invalid, "parameter 0 has 4 elements, got 12 bytes"));
  EXPECT_THAT(weights_.Put(Piece(0, ~uint64_t{0}, {3})),
              StatusIs(invalid, "parameter 0 has 4 elements"));
  EXPECT_THAT(weights_.Put(Piece(2, 0, {3})),
              StatusIs(invalid, "the model has 2 parameters, got number 2"));
  EXPECT_THAT(weights_.Put(Piece(0, 2, {})), StatusIs(invalid, "got 0 bytes"));
}

TEST_F(PutWeightsTest, AWrongBitIsFound) {
  v1::PutWeightsRequest request = Piece(0, 0, {1, 2, 3, 4});
  (*request.mutable_payload())[5] ^= 1;
  EXPECT_THAT(weights_.Put(request),
              StatusIs(absl::StatusCode::kDataLoss, "the checksum is"));
  EXPECT_FALSE(weights_.complete());
}

}  // namespace
}  // namespace tributary
