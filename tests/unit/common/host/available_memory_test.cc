// SPDX-License-Identifier: Apache-2.0
#include "common/host/memory/available_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/host/format_bytes.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

class AvailableMemoryTest : public testing::TemporaryFolderTest {
 protected:
  void SetUp() override {
    Put("proc/meminfo",
        "MemTotal:       8000 kB\nMemFree:         100 kB\n"
        "MemAvailable:   4000 kB\nSwapTotal: 900 kB\nSwapFree:        500 "
        "kB\n");
  }
  void Put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(
        std::filesystem::path(Path(name)).parent_path());
    Write(name, text);
  }
  AvailableMemory Available() const {
    const auto available = ReadAvailableMemory(folder());
    EXPECT_TRUE(available.has_value());
    return available.value_or(AvailableMemory());
  }
};

TEST_F(AvailableMemoryTest, OfTheMachineWithItsFreeSwap) {
  EXPECT_EQ(Available().bytes, 4500u * 1024);
  EXPECT_EQ(Available().source, "MemAvailable and SwapFree of /proc/meminfo");
}

// 3,000,000 bytes, of which 1,200,000 are used, 200,000 of them for page cache.
TEST_F(AvailableMemoryTest, AGroupsLimitCountsIfItLeavesLess) {
  Put("proc/self/cgroup", "0::/a.slice/b.scope\n");
  Put("sys/fs/cgroup/a.slice/memory.max", "3000000\n");
  Put("sys/fs/cgroup/a.slice/memory.current", "1200000\n");
  Put("sys/fs/cgroup/a.slice/memory.stat",
      "anon 1000000\nactive_file 50000\ninactive_file 150000\n");
  Put("sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
  Put("sys/fs/cgroup/a.slice/b.scope/memory.current", "700000\n");
  EXPECT_EQ(Available().bytes, 2'000'000u);
  EXPECT_EQ(Available().source, "memory.max of /sys/fs/cgroup/a.slice");
  Put("sys/fs/cgroup/a.slice/b.scope/memory.max", "800000\n");
  EXPECT_EQ(Available().bytes, 100'000u);
  Put("sys/fs/cgroup/a.slice/b.scope/memory.max", "600000\n");
  EXPECT_EQ(Available().bytes, 0u) << "more is used than allowed";
}

// A container sees its own group at the root.
TEST_F(AvailableMemoryTest, TheGroupsOfContainersAndOfTheFirstVersion) {
  Put("proc/self/cgroup", "0::/\n");
  Put("sys/fs/cgroup/memory.max", "1000000\n");
  Put("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(Available().bytes, 999'000u);
  EXPECT_EQ(Available().source, "memory.max of /sys/fs/cgroup");

  Put("proc/self/cgroup", "4:cpu,memory:/host/path\n");
  Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
  Put("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
  EXPECT_EQ(Available().bytes, 1'500'000u);
  Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Available().bytes, 4500u * 1024) << "no limit";
}

TEST_F(AvailableMemoryTest, IsUnknownWhereTheKernelDoesNotSay) {
  Put("proc/meminfo", "MemTotal: 8000 kB\n");
  EXPECT_FALSE(ReadAvailableMemory(folder()).has_value());
  EXPECT_FALSE(ReadAvailableMemory(Path("nothing")).has_value());
}

TEST(AvailableMemoryOfThisMachineTest, IsKnown) {
  const auto available = ReadAvailableMemory();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(available->bytes, 1u << 20);
}

TEST(CheckClaimTest, ARefusalHasBothFiguresAndARemedy) {
  const MemoryClaim claim = {.who = "server 1",
                             .bytes = uint64_t{3} << 30,
                             .purpose = "its shard",
                             .remedy = "use more servers"};
  EXPECT_TRUE(CheckClaim(claim, AvailableMemory{claim.bytes, "x"}).ok());
  EXPECT_TRUE(CheckClaim(claim, std::nullopt).ok());
  const absl::Status status =
      CheckClaim(claim, AvailableMemory{uint64_t{1} << 20, "memory.max of /g"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "server 1 needs at least 3.0 GiB of memory for its shard, but this "
            "machine has 1.0 MiB left (memory.max of /g); use more servers");
}

TEST(FormatBytesTest, UsesPowersOf1024) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{1} << 20), "1.0 MiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace tributary
