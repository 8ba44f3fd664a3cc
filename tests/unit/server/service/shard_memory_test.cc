// SPDX-License-Identifier: Apache-2.0
#include "server/service/shard_memory.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

// Two parameters of 1,000 weights, over two servers.
PartitionPlan TwoShards() {
  return PartitionPlan::Create({{"v", {1000}}, {"w", {1000}}}, 2, 1 << 20)
      .value();
}

TEST(ShardMemoryTest, AShardHasItsWeightsTwiceAndTheStates) {
  const PartitionPlan partition = TwoShards();
  ASSERT_EQ(partition.shard_elements(1), 1000);
  ShardTraining training;
  training.optimizer.kind = "sgd";
  EXPECT_EQ(ClaimOf(1, partition, training).bytes, 2u * 1000 * 4);
  training.optimizer.kind = "adam";
  EXPECT_EQ(ClaimOf(1, partition, training).bytes, 4u * 1000 * 4);
  EXPECT_EQ(ClaimOf(1, partition, training).who, "server 1");
  training.groups.resize(1);
  EXPECT_EQ(ClaimOf(1, partition, training).bytes, 2u * 1000 * 4)
      << "a group may have no states";
}

}  // namespace
}  // namespace tributary
