// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/environment_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tributary {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using Kind = EnvironmentDifference::Kind;

json Environment() {
  return json::parse(R"({
    "versions": {"tributary": "0.1.0", "compiler": "12.2.0"},
    "machine": {"processor": "EPYC", "processors": 2,
                "instruction_sets": ["avx2", "fma"]},
    "ranks": [{"arithmetic": "cpu, OpenBLAS 0.3, kernels Zen, 1 thread"},
              {"arithmetic": "cpu, OpenBLAS 0.3, kernels Zen, 1 thread"}],
    "data": {"train": {"rows": 10, "checksum": "0000000a"},
             "initial_weights": {"checksum": "0000000c"}}})");
}

auto Is(Kind kind, const std::string& what, const std::string& a,
        const std::string& b) {
  return AllOf(Field(&EnvironmentDifference::kind, kind),
               Field(&EnvironmentDifference::what, what),
               Field(&EnvironmentDifference::a, a),
               Field(&EnvironmentDifference::b, b));
}

TEST(EnvironmentDifferenceTest, EqualOnesHaveNone) {
  EXPECT_THAT(EnvironmentDifferences(Environment(), Environment()), IsEmpty());
}

TEST(EnvironmentDifferenceTest, EveryPartIsCompared) {
  json other = Environment();
  other["versions"]["compiler"] = "13.1";
  other["machine"]["processor"] = "Xeon";
  other["machine"]["processors"] = 4;
  other["machine"]["instruction_sets"] = {"avx2", "fma", "avx512f"};
  other["data"]["train"]["checksum"] = "0000000b";
  other["data"]["initial_weights"]["checksum"] = "0000000d";
  EXPECT_THAT(
      EnvironmentDifferences(Environment(), other),
      ElementsAre(Is(Kind::kData, "checksum of the training data", "0000000a",
                     "0000000b"),
                  Is(Kind::kInitialWeights, "checksum of the initial weights",
                     "0000000c", "0000000d"),
                  Is(Kind::kVersion, "version of compiler", "12.2.0", "13.1"),
                  Is(Kind::kProcessor, "processor", "EPYC", "Xeon"),
                  Is(Kind::kProcessor, "instruction sets", "avx2 fma",
                     "avx2 fma avx512f"),
                  Is(Kind::kProcessors, "number of processors", "2", "4")));
}

TEST(EnvironmentDifferenceTest, ArithmeticIsCutToWhatDiffers) {
  json other = Environment();
  other["ranks"][1]["arithmetic"] =
      "cpu, OpenBLAS 0.3, kernels Haswell, 2 threads";
  EXPECT_THAT(
      EnvironmentDifferences(Environment(), other),
      ElementsAre(Is(Kind::kArithmetic, "arithmetic of rank 1",
                     "kernels Zen, 1 thread", "kernels Haswell, 2 threads")));
}

TEST(EnvironmentDifferenceTest, OtherNumbersOfRowsAreToldInsteadOfChecksums) {
  json other = Environment();
  other["data"]["train"] = {{"rows", 11}, {"checksum", "0000000c"}};
  EXPECT_THAT(EnvironmentDifferences(Environment(), other),
              ElementsAre(Is(Kind::kData, "number of rows of the training data",
                             "10", "11")));
}

TEST(EnvironmentDifferenceTest, WhatIsNotRecordedIsNoDifference) {
  EXPECT_THAT(EnvironmentDifferences(Environment(), json::object()), IsEmpty());
  json other = Environment();
  other["ranks"][0]["arithmetic"] = "";
  other["machine"].erase("processor");
  other["data"] = "damaged";
  EXPECT_THAT(EnvironmentDifferences(Environment(), other), IsEmpty());
}

TEST(EnvironmentDifferenceTest, OnlyTheNumberOfProcessorsIsWithoutEffect) {
  EXPECT_FALSE(EnvironmentDifference{.kind = Kind::kProcessors}.matters());
  EXPECT_TRUE(EnvironmentDifference{.kind = Kind::kArithmetic}.matters());
}

}  // namespace
}  // namespace tributary
