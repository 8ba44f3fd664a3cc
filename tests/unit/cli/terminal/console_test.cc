// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/console.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(AsRecordsTest, EveryLineIsARecordOfALog) {
  EXPECT_EQ(
      AsRecords("step 5 of 10\ntest: loss \"0.5\"\n", "info",
                absl::UnixEpoch()),
      "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"info\","
      "\"role\":\"coordinator\",\"message\":\"step 5 of 10\"}\n"
      "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"level\":\"info\","
      "\"role\":\"coordinator\",\"message\":\"test: loss \\\"0.5\\\"\"}\n");
  EXPECT_EQ(AsRecords("", "info", absl::UnixEpoch()), "");
}

}  // namespace
}  // namespace tributary
