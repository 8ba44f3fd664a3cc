// SPDX-License-Identifier: Apache-2.0
#include "common/host/processors/near_processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

constexpr char kDevice[] = "0000:3B:00.0";

std::vector<int> OwnProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> all;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) all.push_back(processor);
  }
  return all;
}

class NearProcessorsTest : public testing::TemporaryFolderTest {
 protected:
  struct Outcome {
    std::string list;
    std::vector<int> processors;  // of the thread, afterwards
  };
  // Calls StayNear on a thread of its own. Its sysfs says that the processors
  // `near` are near the device.
  Outcome StayNearTo(const std::string& near,
                     const std::string& device = kDevice) {
    const std::string of_device = "bus/pci/devices/0000:3b:00.0";
    std::filesystem::create_directories(Path(of_device));
    Write(of_device + "/local_cpulist", near);
    Outcome outcome;
    std::thread([&] {
      outcome.list = StayNear(device, folder());
      outcome.processors = OwnProcessors();
    }).join();
    return outcome;
  }

  const std::vector<int> all_ = OwnProcessors();
};

TEST_F(NearProcessorsTest, AThreadStaysOnThoseOfItsProcessorsThatAreNear) {
  if (all_.size() < 2) GTEST_SKIP() << "one processor";
  const int last = all_.back();
  const Outcome outcome =
      StayNearTo(absl::StrCat(last, "-", CPU_SETSIZE - 1, "\n"));
  EXPECT_EQ(outcome.list, absl::StrCat(last));
  EXPECT_EQ(outcome.processors, std::vector<int>{last});
}

TEST_F(NearProcessorsTest, ListsHaveSeveralRanges) {
  if (all_.size() < 2) GTEST_SKIP() << "one processor";
  const Outcome outcome = StayNearTo(
      absl::StrCat(all_[0], ",", CPU_SETSIZE - 2, "-", CPU_SETSIZE - 1));
  EXPECT_EQ(outcome.list, absl::StrCat(all_[0]));
  EXPECT_EQ(outcome.processors, std::vector<int>{all_[0]});
}

TEST_F(NearProcessorsTest, NothingChangesWhereAllAreNearOrNoneIs) {
  const std::string far = absl::StrCat(all_.back() + 1);
  for (const std::string& near : {absl::StrCat("0-", CPU_SETSIZE - 1), far,
                                  absl::StrCat(far, "-", far)}) {
    const Outcome outcome = StayNearTo(near);
    EXPECT_EQ(outcome.list, "") << near;
    EXPECT_EQ(outcome.processors, all_) << near;
  }
}

TEST_F(NearProcessorsTest, NothingChangesWhereNearProcessorsAreUnknown) {
  const std::string first = absl::StrCat(all_[0]);
  for (const std::string& near :
       {std::string(), first + "-", "-" + first, first + ",", first + "-x",
        first + "-99999", "9-" + absl::StrCat(8)}) {
    const Outcome outcome = StayNearTo(near);
    EXPECT_EQ(outcome.list, "") << near;
    EXPECT_EQ(outcome.processors, all_) << near;
  }
  EXPECT_EQ(StayNearTo(first, "0000:ff:00.0").list, "");
  EXPECT_EQ(StayNearTo(first, "").list, "");
}

}  // namespace
}  // namespace tributary
