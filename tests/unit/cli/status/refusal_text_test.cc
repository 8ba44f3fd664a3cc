// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/status/ask_job.h"
#include "common/host/address.h"
#include "common/host/listen_socket.h"
#include "common/security/certificate_authority.h"
#include "common/wire/identity/peer_credentials.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

// The process waits for room for its summary, for example.
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

// A killed coordinator leaves its entry in the register.
TEST_F(RefusalTextTest, ARunDirectoryThatIsGoneIsNotLookedInto) {
  job_.known.job.host = HostName();
  job_.known.job.pid = getpid();
  job_.known.job.start_ticks = 1;  // of a process that had this number before
  EXPECT_THAT(Text(), HasSubstr("`tributary checkpoint list "));
  std::filesystem::remove(Path("run"));
  EXPECT_THAT(Text(), AllOf(HasSubstr("has ended without a summary"),
                            HasSubstr("; its run directory is gone"),
                            Not(HasSubstr("checkpoint list"))));
}

// A loop of links cannot be read by root either.
TEST_F(RefusalTextTest, ASummaryThatCannotBeReadIsNotCalledMissing) {
  job_.known.life = CoordinatorLife::kGone;
  std::filesystem::create_symlink("summary.json", Path("run/summary.json"));
  EXPECT_THAT(Text(),
              AllOf(HasSubstr("has ended, and how is not known: " +
                              Path("run/summary.json") + " cannot be read: "),
                    Not(HasSubstr("killed"))));
}

// The machine is overloaded: the kernel connects, but nothing answers.
TEST_F(RefusalTextTest, ACertificateIsNotWantedBecauseOfATimeout) {
  const auto port = ListenOn("127.0.0.1:0", 16).value();
  job_.known.job.coordinator =
      absl::StrCat("127.0.0.1:", PortOf(port[0].get()));
  job_.known.job.encrypted = true;
  job_.known.job.host = HostName();
  job_.known.job.pid = getpid();
  job_.known.life = CoordinatorLife::kRuns;
  const absl::Time now = absl::Now();
  const auto authority =
      CertificateAuthority::Create({now, absl::Hours(2)}).value();
  const Credential own = authority
                             .Issue({.identity = {.role = PeerRole::kOperator}},
                                    {now, absl::Hours(1)})
                             .value();
  job_.client =
      CoordinatorClient::Create(
          {.address = job_.known.job.coordinator,
           .proof = CallerProof(
               PeerCredentials::FromPem(authority.ToPem()->certificate, own)
                   .value(),
               "")})
          .value();
  job_.encrypted = true;
  const absl::Status silent = AskStatus(job_, absl::Milliseconds(300)).status();
  EXPECT_THAT(RefusalText(job_, silent, "stop"),
              AllOf(HasSubstr(absl::StrCat("has a coordinator (", HostName(),
                                           ", pid ", getpid(),
                                           ") that lives, but has not "
                                           "answered for ")),
                    HasSubstr("its machine may be overloaded; try again"),
                    Not(HasSubstr("--tls")), Not(HasSubstr("TLS"))));
  job_.known.job.run_directory.clear();
  EXPECT_THAT(RefusalText(job_, silent, "stop"), Not(HasSubstr("ended?")));
}

}  // namespace
}  // namespace tributary
