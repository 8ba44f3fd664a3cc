// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cli/status/ask_job.h"
#include "common/host/address.h"
#include "common/host/listen_socket.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

// It waits for room for its summary, for example.
TEST_F(RefusalTextTest, AProcessThatHasClosedItsPortIsNotAskedForACertificate) {
  auto port = ListenOn("127.0.0.1:0", 1).value();
  job_.known.job.coordinator =
      absl::StrCat("127.0.0.1:", PortOf(port[0].get()));
  job_.known.job.encrypted = true;
  job_.known.job.host = HostName();
  job_.known.job.pid = getpid();
  job_.client =
      CoordinatorClient::Create({.address = job_.known.job.coordinator})
          .value();
  EXPECT_THAT(Text(), HasSubstr("answers only with a certificate"));
  port.clear();
  EXPECT_THAT(Text(), AllOf(HasSubstr("ends: its coordinator ("),
                            HasSubstr("there is nothing to stop")));
}

}  // namespace
}  // namespace tributary
