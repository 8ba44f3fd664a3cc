// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/status/ask_job.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

class RefusalTextTest : public testing::TemporaryFolderTest {
 protected:
  RefusalTextTest() {
    job_.known.life = CoordinatorLife::kElsewhere;
    job_.known.job.run_directory = Path("run");
    std::filesystem::create_directory(Path("run"));
  }
  std::string Text() {
    return RefusalText(
        job_, absl::UnavailableError("nobody listens at here:7070"), "stop");
  }
  FoundJob job_;
};

// A coordinator that waits for the last scrape still has its place.
TEST_F(RefusalTextTest, AJobThatEndsWhileItIsAskedSaysHow) {
  Write("run/summary.json", R"({"name": "digits", "status": "done",
      "steps": 900, "total_steps": 900})");
  EXPECT_EQ(Text(),
            "digits is done after step 900 of 900; there is nothing to stop");
}

TEST_F(RefusalTextTest, AJobThatMayRunIsNotCalledOver) {
  EXPECT_EQ(Text(),
            Path("run") + " has no coordinator: nobody listens at here:7070");
  job_.known.job.run_directory.clear();
  EXPECT_EQ(Text(), "nobody listens at here:7070; has the job ended?");
}

}  // namespace
}  // namespace tributary
