// SPDX-License-Identifier: Apache-2.0
#include "common/status/about_field.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(AboutFieldTest, AFieldGetsThePartsOfItsCallers) {
  const absl::Status error = absl::InvalidArgumentError("negative");
  const absl::Status placed =
      AboutField(AboutField(error, "labels"), "data.train.npy");
  EXPECT_EQ(FieldOf(placed), "data.train.npy.labels");
  EXPECT_EQ(placed.code(), error.code());
  EXPECT_EQ(placed.message(), "negative");
  EXPECT_EQ(FieldOf(AboutField(placed, "")), "data.train.npy.labels");
  EXPECT_EQ(FieldOf(error), "");
}

TEST(AboutFieldTest, WhatIsWellNamesNone) {
  EXPECT_EQ(FieldOf(AboutField(absl::OkStatus(), "labels")), "");
  EXPECT_EQ(AboutField(absl::StatusOr<int>(7), "labels").value(), 7);
}

}  // namespace
}  // namespace tributary
