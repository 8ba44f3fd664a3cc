// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/device_claim.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/testing/nccl/device_like_ops.h"

namespace tributary {
namespace {

class DeviceClaimTest : public ::testing::Test {
 protected:
  DeviceClaimTest() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    // No other process on this machine uses these names.
    first_.SetId(absl::StrCat("first-", getpid()));
    second_.SetId(absl::StrCat("second-", getpid()));
  }
  ~DeviceClaimTest() override { spdlog::set_default_logger(before_); }

  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream log_;
  testing::DeviceLikeOps first_, second_;
};

TEST_F(DeviceClaimTest, RanksWithADeviceEachHearNothing) {
  const UniqueFd first = ClaimDevice(first_), second = ClaimDevice(second_);
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(second.ok());
  EXPECT_EQ(log_.str(), "");
}

TEST_F(DeviceClaimTest, ASecondRankOnADeviceIsTold) {
  UniqueFd first = ClaimDevice(first_);
  EXPECT_FALSE(ClaimDevice(first_).ok());
  EXPECT_NE(log_.str().find("computes on device-like (first-"),
            std::string::npos)
      << log_.str();
  log_.str("");
  first = UniqueFd();  // it ends
  EXPECT_TRUE(ClaimDevice(first_).ok());
  EXPECT_EQ(log_.str(), "");
}

TEST_F(DeviceClaimTest, AnyNumberOfRanksComputeOnTheHost) {
  const auto cpu = CreateCpuOps();
  EXPECT_FALSE(ClaimDevice(*cpu).ok());
  EXPECT_FALSE(ClaimDevice(*cpu).ok());
  EXPECT_EQ(log_.str(), "");
}

}  // namespace
}  // namespace tributary
