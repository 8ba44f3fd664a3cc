// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program/log_follower.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogFollowerTest : public testing::TemporaryFolderTest {
 protected:
  void Append(const std::string& text) {
    std::ofstream(Path("log"), std::ios::app) << text;
  }
};

TEST_F(LogFollowerTest, EachWholeLineComesOnce) {
  LogFollower log(Path("log"));
  EXPECT_THAT(log.TakeLines(), IsEmpty());  // there is no file yet
  Append("one\ntwo\nthr");
  EXPECT_THAT(log.TakeLines(), ElementsAre("one", "two"));
  EXPECT_THAT(log.TakeLines(), IsEmpty());
  Append("ee\n");
  EXPECT_THAT(log.TakeLines(), ElementsAre("three"));
  Append("four");
  EXPECT_THAT(log.TakeRest(), ElementsAre("four"));
  EXPECT_THAT(log.TakeRest(), IsEmpty());
}

TEST_F(LogFollowerTest, AnEndlessLineComesInParts) {
  LogFollower log(Path("log"));
  Append(std::string(LogFollower::kLongestLine + 3, 'x') + "\n");
  EXPECT_THAT(log.TakeLines(),
              ElementsAre(std::string(LogFollower::kLongestLine, 'x'), "xxx"));
}

}  // namespace
}  // namespace tributary
