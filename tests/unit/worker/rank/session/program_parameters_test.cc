// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/program/program_parameters.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

using Memory = ProgramParameters::Memory;

const ParameterSpecs kSpecs = {{.name = "weight", .shape = {5, 4}},
                               {.name = "bias", .shape = {3}}};

TEST(ProgramParametersTest, ServersWriteIntoTheProgramsMemory) {
  std::vector<float> weight(20, 1), bias(3, 2);
  ProgramParameters parameters(kSpecs, {weight.data(), bias.data()},
                               Memory::kForServers);
  EXPECT_EQ(parameters.weight(0), weight.data());
  EXPECT_EQ(parameters.weight(1), bias.data());
}

// A backward function may still read a weight whose gradient is final.
TEST(ProgramParametersTest, AGroupsWeightsReachTheProgramWhenTheStepEnds) {
  std::vector<float> weight(20, 1), bias(3, 2);
  ProgramParameters parameters(kSpecs, {weight.data(), bias.data()},
                               Memory::kForGroups);
  parameters.weight(0)[19] = 7;
  parameters.weight(1)[0] = 8;
  EXPECT_EQ(weight[19], 1);
  EXPECT_EQ(bias[0], 2);
  parameters.Publish(/*steps=*/1);
  EXPECT_EQ(weight[19], 7);
  EXPECT_EQ(bias[0], 8);
  EXPECT_EQ(parameters.FirstChanged(), "");
  bias[2] = 9;
  EXPECT_EQ(parameters.FirstChanged(), "bias");
}

TEST(ProgramParametersTest, AGroupsArraysHaveOneOrder) {
  std::vector<float> weight(20, 1), bias(3, 2);
  ProgramParameters parameters(kSpecs, {weight.data(), bias.data()},
                               Memory::kForGroups);
  const int64_t apart = parameters.weight(1) - parameters.weight(0);
  EXPECT_GE(apart, 20);
  EXPECT_EQ(parameters.gradient(1) - parameters.gradient(0), apart);
}

}  // namespace
}  // namespace tributary
