// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/collective/device_offer.h"

#include <gtest/gtest.h>

#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

const std::string kFirst = DeviceOffer{"boot/0000:01:00.0", ""}.Encode();
const std::string kSecond = DeviceOffer{"boot/0000:02:00.0", ""}.Encode();
const std::string kNone =
    DeviceOffer{"", "NCCL cannot be opened (libnccl.so.2 wanted)"}.Encode();

TEST(DeviceOfferTest, ADeviceForEachRankIsWhatNcclWants) {
  std::string why;
  EXPECT_EQ(*AgreeOnNccl({kFirst, kSecond}, {0, 1}, false, &why), true);
  EXPECT_EQ(why, "");
  EXPECT_EQ(*AgreeOnNccl({kFirst, kSecond}, {0, 1}, true, &why), true);
}

TEST(DeviceOfferTest, WithoutItAGroupTakesGlooAndSaysWhy) {
  std::string why;
  EXPECT_EQ(*AgreeOnNccl({kFirst, kNone}, {4, 6}, false, &why), false);
  EXPECT_EQ(why, "rank 6: NCCL cannot be opened (libnccl.so.2 wanted)");
  EXPECT_EQ(*AgreeOnNccl({kSecond, kFirst, kSecond}, {0, 2, 4}, false, &why),
            false);
  EXPECT_EQ(why, "ranks 0 and 4 have one device, NCCL wants one for each");
}

TEST(DeviceOfferTest, WhereNcclIsRequiredThatIsAnError) {
  std::string why;
  EXPECT_THAT(AgreeOnNccl({kNone, kFirst}, {0, 1}, true, &why),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "backend: nccl cannot be used: rank 0: NCCL cannot be "
                       "opened (libnccl.so.2 wanted)"));
}

TEST(DeviceOfferTest, AnOfferThatSaysNothingIsNone) {
  std::string why;
  EXPECT_EQ(*AgreeOnNccl({"", "+"}, {0, 1}, false, &why), false);
  EXPECT_EQ(why, "rank 0: it said nothing");
}

}  // namespace
}  // namespace tributary
