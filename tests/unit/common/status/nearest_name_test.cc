// SPDX-License-Identifier: Apache-2.0
#include "common/status/nearest_name.h"
#include "common/status/quoted.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

TEST(NearestNameTest, DistanceCountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", "abc"), 0);
  EXPECT_EQ(EditDistance("optimiser", "optimizer"), 1);
  EXPECT_EQ(EditDistance("espilon", "epsilon"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(NearestNameTest, FarNamesAreNotOffered) {
  EXPECT_EQ(NearestName("epoch", {"steps", "epochs"}), "epochs");
  EXPECT_EQ(NearestName("banana", {"steps", "epochs"}), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), {"steps"}), "");
}

TEST(NearestNameTest, NamesOfOtherProgramsAreKnown) {
  const std::vector<std::string> layers = {"linear", "relu",      "silu",
                                           "gelu",   "layernorm", "max_pool"};
  EXPECT_EQ(NearestName("ReLU", layers), "relu");
  EXPECT_EQ(NearestName("LayerNorm", layers), "layernorm");
  EXPECT_EQ(NearestName("swish", layers), "silu");
  EXPECT_EQ(NearestName("MaxPool2d", layers), "max_pool");
  EXPECT_EQ(NearestName("gpu", {"auto", "cpu", "cuda"}), "cuda");
  EXPECT_EQ(NearestName("ddp", {"parameter_server", "all_reduce"}),
            "all_reduce");
  // Only what can stand here is offered.
  EXPECT_EQ(NearestName("ddp", {"epochs", "steps"}), "");
}

TEST(NearestNameTest, ForeignTextIsEscapedAndCut) {
  EXPECT_EQ(Quoted("a\"b\n"), "\"a\\\"b\\n\"");
  EXPECT_EQ(Quoted(std::string(61, 'x')),
            absl::StrCat("\"", std::string(60, 'x'), "...\""));
  // Two bytes a letter: the cut does not fall inside of one.
  std::string umlauts = "x";
  for (int i = 0; i < 40; ++i) umlauts += "\xc3\xbc";
  EXPECT_EQ(Quoted(umlauts),
            absl::StrCat("\"", umlauts.substr(0, 59), "...\""));
}

}  // namespace
}  // namespace tributary
