// SPDX-License-Identifier: Apache-2.0
// Every operation on every kind of device against the CPU's reference, and the
// CPU's loops for new instruction sets against those for the oldest.
#include <gtest/gtest.h>

#include <string>

#include "kernels/device.h"
#include "tests/gpu/agreement.h"

// The same sources built for the plainest processor (CMakeLists.txt).
namespace tributary_plain::testing {
std::vector<std::pair<std::string, tributary::testing::Outputs>> CpuOutputs();
}

namespace tributary::testing {
namespace {

class OpsAgreementTest : public ::testing::TestWithParam<DeviceChoice> {};

TEST_P(OpsAgreementTest, EveryOperationAgreesWithTheReference) {
  std::string why;
  const std::unique_ptr<Ops> ops =
      GetParam() == DeviceChoice::kCuda ? CreateCudaOps(&why) : CreateCpuOps();
  if (ops == nullptr) GTEST_SKIP() << "skipped: no device (" << why << ")";
  const std::unique_ptr<Ops> reference = CreateCpuOps();
  for (const AgreementCheck& check : AllAgreementChecks()) {
    const Outputs expected = check.run(*reference);
    const Outputs got = check.run(*ops);
    const DeviceStatus status = ops->Synchronize();
    ASSERT_TRUE(status.ok()) << check.name << ": " << status.message();
    EXPECT_LE(WorstError(expected, got), check.tolerance) << check.name;
  }
}

TEST(Bfloat16AgreementTest, ProductsInBfloat16AgreeWithTheReference) {
  std::string why;
  const auto ops = CreateCudaOps(&why, 0, ProductPrecision::kBfloat16);
  if (ops == nullptr) GTEST_SKIP() << "skipped: no device (" << why << ")";
  const auto reference = CreateCpuOps(ProductPrecision::kBfloat16);
  for (const AgreementCheck& check : AllAgreementChecks()) {
    if (!check.products) continue;
    const Outputs expected = check.run(*reference);
    const Outputs got = check.run(*ops);
    const DeviceStatus status = ops->Synchronize();
    ASSERT_TRUE(status.ok()) << check.name << ": " << status.message();
    EXPECT_LE(WorstError(expected, got), check.Bfloat16Tolerance())
        << check.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OpsAgreementTest,
                         ::testing::Values(DeviceChoice::kCpu,
                                           DeviceChoice::kCuda),
                         [](const auto& info) -> std::string {
                           return info.param == DeviceChoice::kCpu ? "Cpu"
                                                                   : "Cuda";
                         });

TEST(InstructionSetTest, EveryInstructionSetGivesTheSameBits) {
  const auto expected = tributary_plain::testing::CpuOutputs();
  const auto got = CpuOutputs();
  ASSERT_EQ(expected.size(), got.size());
  const std::vector<AgreementCheck> checks = AllAgreementChecks();
  for (size_t i = 0; i < got.size(); ++i) {
    // The plain build has the reference product in place of OpenBLAS.
    const bool product = checks[i].products;
    EXPECT_LE(WorstError(expected[i].second, got[i].second),
              product ? checks[i].tolerance : 0)
        << got[i].first;
  }
}

TEST(WorstErrorTest, IsRelativeToTheLargestMagnitudeOfTheArray) {
  EXPECT_DOUBLE_EQ(WorstError({{1, -4}}, {{1.5, -4}}), 0.125);
  EXPECT_EQ(WorstError({{1, 2}}, {{1, 2}}), 0);
  EXPECT_GT(WorstError({{1}}, {{NAN}}), 1e300);
  EXPECT_GT(WorstError({{1}}, {{1, 2}}), 1e300);
}

}  // namespace
}  // namespace tributary::testing
