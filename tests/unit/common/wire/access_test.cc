// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_folder.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class AccessTest : public testing::TemporaryFolderTest {
 protected:
  AccessTest()
      : authority_(CertificateAuthority::Create(
                       {absl::Now() - absl::Hours(1), absl::Hours(24)})
                       .value()) {}

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  // A folder with the certificate of a role.
  std::string Folder(PeerRole role, bool whole = true) {
    Write("ca.crt", authority_.ToPem()->certificate);
    const Credential own = Issue(role);
    if (whole) {
      Write("tls.crt", own.certificate);
      Write("tls.key", own.key);
    }
    return Path("");
  }
  Credential Issue(PeerRole role) {
    return authority_
        .Issue({.identity = {.role = role}},
               {absl::Now() - absl::Hours(1), absl::Hours(2)})
        .value();
  }

  CertificateAuthority authority_;
};

TEST_F(AccessTest, ClearTextIsForThisMachineAlone) {
  const Access access = Access::Read({}, PeerRole::kServer).value();
  for (const char* here :
       {"127.0.0.1:0", "127.3.4.5:80", "localhost:7070", "[::1]:7070"}) {
    EXPECT_TRUE(access.CheckListen(here).ok()) << here;
  }
  for (const char* open : {"0.0.0.0:0", "[::]:7070", "10.0.0.1:7070",
                           "node-3:7070", "128.0.0.1:1"}) {
    EXPECT_THAT(access.CheckListen(open),
                StatusIs(absl::StatusCode::kInvalidArgument, "--insecure"))
        << open;
  }
}

TEST_F(AccessTest, InsecureOrTlsOpenThePort) {
  EXPECT_TRUE(Access::Read({.insecure = true}, PeerRole::kServer)
                  ->CheckListen("0.0.0.0:1")
                  .ok());
  const auto access =
      Access::Read({.tls = Folder(PeerRole::kServer)}, PeerRole::kServer);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_TRUE(access->CheckListen("0.0.0.0:1").ok());
  EXPECT_TRUE(access->encrypted());
}

TEST_F(AccessTest, GroupsAreInClearTextAndSoForThisMachineAlone) {
  const Access encrypted =
      Access::Read({.tls = Folder(PeerRole::kWorker)}, PeerRole::kWorker)
          .value();
  for (const char* here : {"127.0.0.1:0", "localhost:7070", "[::1]:0"}) {
    EXPECT_TRUE(encrypted.CheckListenInClear(here).ok()) << here;
  }
  for (const char* open : {"10.0.0.1:0", "[fd00::2]:0", "0.0.0.0:7079"}) {
    EXPECT_THAT(encrypted.CheckListenInClear(open),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         "--insecure-groups allows it"))
        << open;
    for (const AccessOptions& allowed : {AccessOptions{.insecure_groups = true},
                                         AccessOptions{.insecure = true}}) {
      EXPECT_TRUE(Access::Read(allowed, PeerRole::kWorker)
                      ->CheckListenInClear(open)
                      .ok())
          << open;
    }
  }
}

TEST_F(AccessTest, TheCertificateMustBeOfTheProcesssRole) {
  EXPECT_THAT(
      Access::Read({.tls = Folder(PeerRole::kWorker)}, PeerRole::kServer)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "is the certificate of a worker, wanted one of a "
               "server"));
}

TEST_F(AccessTest, ACertificateOfAFolderIsReadAnew) {
  EXPECT_EQ(Access().renew(), nullptr);
  const std::string folder = Folder(PeerRole::kServer);
  const auto access = Access::Read({.tls = folder}, PeerRole::kServer);
  ASSERT_TRUE(access.ok()) << access.status();
  const auto renew = access->renew();
  ASSERT_NE(renew, nullptr);
  EXPECT_EQ(renew()->key, access->own().key);
  Folder(PeerRole::kServer);  // writes another certificate and key there
  EXPECT_NE(renew()->key, access->own().key);
  EXPECT_EQ(renew()->key,
            Access::Read({.tls = folder}, PeerRole::kServer)->own().key);
}

TEST_F(AccessTest, ATokenReplacesTheCertificateOfACaller) {
  const std::string folder = Folder(PeerRole::kWorker, /*whole=*/false);
  const std::string token = Write("token", absl::StrCat(kToken, "\n"));
  const auto caller =
      Access::Read({.tls = folder, .token_file = token}, PeerRole::kWorker);
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->token(), kToken);
  EXPECT_THAT(Access::Read({.tls = folder}, PeerRole::kWorker).status(),
              StatusIs(absl::StatusCode::kNotFound, ""));
  // A port needs a certificate of its own.
  EXPECT_THAT(
      Access::Read({.tls = folder, .token_file = token}, PeerRole::kServer)
          .status(),
      StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_F(AccessTest, AnExpiredCertificateIsRefusedAtOnceAndNamed) {
  const std::string folder = Folder(PeerRole::kWorker);
  const auto access = Access::Read({.tls = folder}, PeerRole::kWorker);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_GT(access->certificate_end()().value(), absl::Now());
  const Credential old =
      authority_
          .Issue({.identity = {.role = PeerRole::kWorker}},
                 {absl::Now() - absl::Hours(1), absl::Minutes(30)})
          .value();
  Write("tls.crt", old.certificate);
  Write("tls.key", old.key);
  EXPECT_THAT(
      Access::Read({.tls = folder}, PeerRole::kWorker).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, "tls.crt expired at "));
  EXPECT_LT(access->certificate_end()().value(), absl::Now());
  EXPECT_EQ(Access().certificate_end(), nullptr);
}

TEST_F(AccessTest, ATokenIsLongAndNeverInClearText) {
  const std::string folder = Folder(PeerRole::kWorker);
  EXPECT_THAT(
      Access::Read({.tls = folder, .token_file = Write("token", "secret")},
                   PeerRole::kWorker)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "at least 32 characters, got 6"));
  EXPECT_THAT(
      Access::Read({.token_file = Write("token", kToken)}, PeerRole::kWorker)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "--token-file wants --tls"));
}

TEST_F(AccessTest, ABundleComesBackFromItsLine) {
  const AccessBundle bundle = {authority_.ToPem()->certificate,
                               Issue(PeerRole::kWorker), kToken};
  const std::string line = bundle.ToLine();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto again = AccessBundle::FromLine(line);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->authority, bundle.authority);
  EXPECT_EQ(again->own.certificate, bundle.own.certificate);
  EXPECT_EQ(again->own.key, bundle.own.key);
  EXPECT_EQ(again->token, kToken);
  EXPECT_TRUE(Access::FromBundle(*again)->encrypted());
}

TEST_F(AccessTest, ABundleWithACertificateOfAnotherTimeIsRefused) {
  const auto read = [this](absl::Duration from) {
    AccessBundle bundle;
    bundle.authority = authority_.ToPem()->certificate;
    bundle.own = authority_
                     .Issue({.identity = {.role = PeerRole::kWorker}},
                            {absl::Now() + from, absl::Minutes(30)})
                     .value();
    return Access::FromBundle(bundle).status();
  };
  TRIBUTARY_EXPECT_OK(read(-absl::Minutes(10)));
  const absl::Status expired = read(-absl::Hours(1));
  EXPECT_THAT(expired,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "--tls -: the certificate of this process expired at "));
  EXPECT_THAT(expired, StatusIs(absl::StatusCode::kFailedPrecondition,
                                "or write a newer one to standard input"));
  EXPECT_THAT(read(absl::Hours(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "--tls -: the certificate of this process is valid "
                       "from "));
}

TEST_F(AccessTest, WhatIsNoBundleIsRefused) {
  for (const char* line :
       {"", "{", "[]", "7", R"({"authority":"a"})",
        R"({"authority":1,"certificate":"","key":"","token":""})"}) {
    EXPECT_THAT(AccessBundle::FromLine(line).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, ""))
        << line;
  }
}

}  // namespace
}  // namespace tributary
