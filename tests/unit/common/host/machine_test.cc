// SPDX-License-Identifier: Apache-2.0
#include "common/host/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(MachineTest, TheFirstProcessorIsRead) {
  Machine machine;
  ReadProcessorInfo(
      "processor\t: 0\n"
      "model name\t: AMD EPYC 7B13\n"
      "flags\t\t: fpu avx fma avx2 avx512_new\n"
      "\n"
      "processor\t: 1\n"
      "model name\t: another\n",
      &machine);
  EXPECT_EQ(machine.processor, "AMD EPYC 7B13");
  EXPECT_THAT(machine.instruction_sets, ElementsAre("avx", "avx2", "fma"));
}

TEST(MachineTest, AProcessorWithoutANameKeepsItsKind) {
  Machine machine{.processor = "aarch64"};
  ReadProcessorInfo("processor\t: 0\nFeatures\t: fp asimd sve\n", &machine);
  EXPECT_EQ(machine.processor, "aarch64");
  EXPECT_THAT(machine.instruction_sets, ElementsAre("asimd", "sve"));
}

TEST(MachineTest, AnEmptyTextChangesNothing) {
  Machine machine{.processor = "aarch64"};
  ReadProcessorInfo("", &machine);
  EXPECT_EQ(machine.processor, "aarch64");
  EXPECT_THAT(machine.instruction_sets, IsEmpty());
}

TEST(MachineTest, ThisMachineHasAProcessor) {
  const Machine machine = ThisMachine();
  EXPECT_FALSE(machine.processor.empty());
  EXPECT_GE(machine.processors, 1);
  EXPECT_THAT(machine.c_library, StartsWith("glibc 2."));
}

}  // namespace
}  // namespace tributary
