// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/file_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tributary {
namespace {

using Names = std::vector<std::string>;

// Sorts both lists by their bytes, as patterns do, and compares them.
std::optional<size_t> Mispaired(Names files, Names others) {
  std::sort(files.begin(), files.end());
  std::sort(others.begin(), others.end());
  return FirstMispaired(files, others);
}

TEST(FilePairsTest, NamesInDifferentOrdersAreFound) {
  // Numbers of different lengths, also in the names of folders.
  EXPECT_EQ(Mispaired({"x1", "x10"}, {"y1_a", "y10_a"}), 0);
  EXPECT_EQ(Mispaired({"d/dx1/x.npy", "d/dx2/x.npy", "d/dx10/x.npy"},
                      {"d/dy01/y.npy", "d/dy02/y.npy", "d/dy10/y.npy"}),
            1);
  // The names in one list have one more number.
  EXPECT_EQ(Mispaired({"x1_7.npy", "x2_14.npy", "x10_70.npy"},
                      {"y01.npy", "y02.npy", "y10.npy"}),
            0);
  // Words that are followed by another byte in the other list.
  EXPECT_EQ(Mispaired({"a_x.npy", "a1_x.npy", "b_x.npy"},
                      {"a-y.npy", "a1-y.npy", "b-y.npy"}),
            0);
  EXPECT_EQ(Mispaired({"run.x.npy", "runA.x.npy", "run_b.x.npy"},
                      {"run_y.npy", "runA_y.npy", "run_b_y.npy"}),
            0);
  EXPECT_EQ(
      Mispaired({"x1a_f", "x1a1_f", "x1b_f"}, {"y2a-l", "y2a1-l", "y2b-l"}), 0);
}

TEST(FilePairsTest, NamesInTheSameOrderAreNot) {
  const auto none = std::nullopt;
  EXPECT_EQ(Mispaired({"x01", "x02", "x10"}, {"y1", "y2", "y3"}), none);
  EXPECT_EQ(Mispaired({"x10", "x11", "x12"}, {"y010", "y011", "y012"}), none);
  EXPECT_EQ(Mispaired({"p1", "p10", "p2"}, {"q-1", "q-10", "q-2"}), none);
  EXPECT_EQ(Mispaired({"a_x", "b_x"}, {"y_a", "y_b"}), none);
  EXPECT_EQ(Mispaired({"2020-x1", "2021-x2"}, {"y1-2020", "y2-2021"}), none);
  EXPECT_EQ(Mispaired({"x1_7", "x2_14"}, {"y1_b", "y2_c"}), none);
  EXPECT_EQ(Mispaired({"x", "y"}, {"only"}), none);
  EXPECT_EQ(Mispaired({"x0.npy"}, {"y00.npy"}), none);
}

// Only one of the numbers in a name has the values of the other list's numbers.
TEST(FilePairsTest, TheOrderOfAllNumbersCounts) {
  EXPECT_EQ(Mispaired({"x_2023-Q2", "x_2023-Q3", "x_2023-Q4", "x_2024-Q1"},
                      {"y_1", "y_2", "y_3", "y_4"}),
            std::nullopt);
  EXPECT_EQ(Mispaired({"20240105-1.x", "20240106-0.x"}, {"0.y", "1.y"}),
            std::nullopt);
}

TEST(FilePairsTest, WordsThatAgreeAreEnough) {
  EXPECT_EQ(
      Mispaired({"siteA_v2", "siteB_v1"}, {"lab_siteA_v1", "lab_siteB_v2"}),
      std::nullopt);
}

}  // namespace
}  // namespace tributary
