// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/block_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/plan/plan_codec.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

constexpr int64_t kFloats = 1 << 10;
constexpr size_t kBytes = kFloats * sizeof(float);

// A plan of one block with two parameters of kFloats.
PartitionPlan Plan() {
  v1::Plan plan;
  plan.set_num_workers(1);
  plan.add_servers("127.0.0.1:1");
  plan.set_bucket_bytes(1 << 20);
  for (const char* name : {"a", "b"}) {
    v1::ParameterSpec& spec = *plan.add_parameters();
    spec.set_name(name);
    spec.add_shape(kFloats);
  }
  return MakePartitionPlan(plan).value();
}

class BlockMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(plan_.blocks(0).size(), 1u);
    ASSERT_EQ(block_.slices.size(), 2u);
    ASSERT_EQ(block_.slices[0].parameter, 1);  // in backward order
  }
  static std::string Bytes(const BlockMemory& memory) {
    std::string bytes;
    for (const grpc::Slice& slice : memory.slices) {
      bytes.append(slice.begin(), slice.end());
    }
    return bytes;
  }

  const PartitionPlan plan_ = Plan();
  const Block& block_ = plan_.blocks(0)[0];
};

// gRPC can read the bytes of a cancelled call when its owner is gone.
TEST_F(BlockMemoryTest, WhatIsInTheArenaIsNotCopiedAndKeepsItAlive) {
  auto arena = *SharedArena::Create(2 * SharedArena::Taken(kBytes));
  const std::weak_ptr<SharedArena> living = arena;
  auto* const a = static_cast<float*>(arena->Allocate(kBytes));
  auto* const b = static_cast<float*>(arena->Allocate(kBytes));
  std::memset(a, 'a', kBytes);
  std::memset(b, 'b', kBytes);
  BlockMemory memory = Gather(block_, {{a, b}}, arena);
  arena.reset();
  EXPECT_FALSE(living.expired());
  const std::string wanted =
      std::string(kBytes, 'b') + std::string(kBytes, 'a');
  EXPECT_EQ(Bytes(memory), wanted);
  EXPECT_EQ(memory.bytes, 2 * kBytes);
  EXPECT_EQ(memory.crc32c, Crc32c(wanted.data(), wanted.size()));
  EXPECT_EQ(static_cast<const void*>(memory.slices[0].begin()), b);
  memory.slices.pop_back();
  EXPECT_FALSE(living.expired());
  memory.slices.clear();
  EXPECT_TRUE(living.expired());
}

TEST_F(BlockMemoryTest, WhatIsElsewhereIsCopied) {
  const auto arena = *SharedArena::Create(SharedArena::Taken(kBytes));
  auto* const inside = static_cast<float*>(arena->Allocate(kBytes));
  std::vector<float> outside(kFloats, 1.0f);
  std::memset(inside, 'i', kBytes);
  const BlockMemory mixed = Gather(block_, {{inside, outside.data()}}, arena);
  const BlockMemory copied =
      Gather(block_, {{inside, outside.data()}}, /*arena=*/nullptr);
  const std::string before = Bytes(copied);
  EXPECT_EQ(Bytes(mixed), before);
  std::memset(inside, 'j', kBytes);
  outside.assign(kFloats, 2.0f);
  EXPECT_EQ(Bytes(copied), before);
  EXPECT_EQ(Bytes(mixed), before.substr(0, kBytes) + std::string(kBytes, 'j'));
}

}  // namespace
}  // namespace tributary
