// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/job_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JobKeysTest, BeginWithTheKeysOfTheJob) {
  EXPECT_THAT(JobKeys(""), Contains("training."));
  EXPECT_THAT(JobKeys(""), Contains("seed="));
  EXPECT_THAT(JobKeys("dev"), ElementsAre("device="));
  EXPECT_THAT(JobKeys("nothing"), IsEmpty());
}

TEST(JobKeysTest, FollowTheBlocks) {
  EXPECT_THAT(JobKeys("training.epo"), ElementsAre("training.epochs="));
  EXPECT_THAT(JobKeys("training.optimizer.adam.learning"),
              ElementsAre("training.optimizer.adam.learning_rate="));
  EXPECT_THAT(JobKeys("seed.a"), IsEmpty());
  EXPECT_THAT(JobKeys("nothing."), IsEmpty());
}

TEST(JobKeysTest, PassOverNumbersInLists) {
  EXPECT_THAT(JobKeys("model.sequential.0.linear.ou"),
              ElementsAre("model.sequential.0.linear.out="));
  EXPECT_THAT(JobKeys("model.0."), IsEmpty());
}

TEST(JobKeysTest, EndWithTheNamesThatAFieldHas) {
  EXPECT_THAT(JobKeys("device=c"), ElementsAre("device=cpu", "device=cuda"));
  EXPECT_THAT(JobKeys("checkpoint.at_end="),
              ElementsAre("checkpoint.at_end=true", "checkpoint.at_end=false"));
  EXPECT_THAT(JobKeys("strategy.parameter_server.sync=b"),
              ElementsAre("strategy.parameter_server.sync=bsp"));
  EXPECT_THAT(JobKeys("training.epochs="), IsEmpty());
  EXPECT_THAT(JobKeys("nothing=a"), IsEmpty());
}

}  // namespace
}  // namespace tributary
