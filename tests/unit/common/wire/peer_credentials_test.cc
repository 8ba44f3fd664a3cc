// SPDX-License-Identifier: Apache-2.0
// A server and clients that prove who they are to each other.
#include "common/wire/identity/peer_credentials.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/temporary_folder.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using Credentials = std::shared_ptr<const PeerCredentials>;

constexpr absl::Duration kOneDay = absl::Hours(24);

// Answers with the caller's identity in the job's name.
class WhoCalls final : public v1::CoordinatorService::Service {
  grpc::Status GetJobStatus(grpc::ServerContext* context,
                            const v1::JobStatusRequest*,
                            v1::JobStatusResponse* response) override {
    const auto caller = CallerOf(*context->auth_context());
    response->set_name(caller.ok() ? caller->Uri() : "nobody");
    return grpc::Status::OK;
  }
};

class PeerCredentialsTest : public testing::TemporaryFolderTest {
 protected:
  static CertificateAuthority NewAuthority() {
    return CertificateAuthority::Create({absl::Now() - kOneDay, 100 * kOneDay})
        .value();
  }
  static Credential Issue(const CertificateAuthority& authority,
                          const std::string& job, PeerRole role,
                          absl::Duration duration = 2 * kOneDay) {
    return authority.Issue({{job, role}, {}}, {absl::Now() - kOneDay, duration})
        .value();
  }
  Credentials Of(const std::string& job, PeerRole role) const {
    return PeerCredentials::FromPem(root_, Issue(authority_, job, role))
        .value();
  }
  // Starts a server with these credentials.
  void Serve(const Credentials& credentials) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials->ForServer(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  // The caller's identity as the server saw it, or the code of the error.
  std::string Ask(const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                  bool wait = false) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::CoordinatorService::NewStub(
        grpc::CreateCustomChannel(address_, credentials, arguments));
    grpc::ClientContext context;
    context.set_wait_for_ready(wait);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    v1::JobStatusResponse response;
    const grpc::Status status =
        stub->GetJobStatus(&context, v1::JobStatusRequest(), &response);
    return status.ok() ? response.name()
                       : absl::StrCat("error ", status.error_code());
  }
  void WriteFolder(const std::string& name,
                   const CertificateAuthority& authority, PeerRole role) {
    std::filesystem::create_directories(Path(name));
    const Credential own = Issue(authority, "digits", role);
    Write(name + "/ca.crt", authority.ToPem()->certificate);
    Write(name + "/tls.crt", own.certificate);
    Write(name + "/tls.key", own.key);
  }

  const std::string refused_ =
      absl::StrCat("error ", grpc::StatusCode::UNAVAILABLE);
  const CertificateAuthority authority_ = NewAuthority();
  const std::string root_ = authority_.ToPem()->certificate;
  WhoCalls service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(PeerCredentialsTest, BothEndsKnowEachOther) {
  Serve(Of("digits", PeerRole::kCoordinator));
  for (PeerRole role : AllPeerRoles()) {
    EXPECT_EQ(Ask(Of("digits", role)->ForChannel(PeerRole::kCoordinator)),
              absl::StrCat("spiffe://tributary/digits/", PeerRoleName(role)));
  }
  EXPECT_EQ(Ask(Of("", PeerRole::kMonitor)->ForChannel(PeerRole::kCoordinator)),
            "spiffe://tributary/monitor");
}

TEST_F(PeerCredentialsTest, StrangersGetNoAnswer) {
  Serve(Of("digits", PeerRole::kCoordinator));
  EXPECT_EQ(Ask(grpc::InsecureChannelCredentials()), refused_);
  grpc::SslCredentialsOptions nothing;
  nothing.pem_root_certs = root_;
  EXPECT_EQ(Ask(grpc::SslCredentials(nothing)), refused_);
  // The stranger knows the server's authority, but another one issued its own.
  const CertificateAuthority other = NewAuthority();
  const auto stranger = PeerCredentials::FromPem(
      root_, Issue(other, "digits", PeerRole::kWorker));
  EXPECT_EQ(Ask((*stranger)->ForChannel(PeerRole::kCoordinator)), refused_);
  const auto expired = PeerCredentials::FromPem(
      root_, Issue(authority_, "digits", PeerRole::kWorker, kOneDay / 2));
  EXPECT_EQ(Ask((*expired)->ForChannel(PeerRole::kCoordinator)), refused_);
  EXPECT_EQ(
      Ask(Of("letters", PeerRole::kWorker)->ForChannel(PeerRole::kCoordinator)),
      refused_);
}

// A worker's certificate does not make its holder a coordinator.
TEST_F(PeerCredentialsTest, ACallerChecksTheServersRoleJobAndAuthority) {
  Serve(Of("digits", PeerRole::kWorker));
  const Credentials caller = Of("digits", PeerRole::kWorker);
  EXPECT_EQ(Ask(caller->ForChannel(PeerRole::kCoordinator)), refused_);
  EXPECT_EQ(Ask(caller->ForChannel(PeerRole::kWorker)),
            "spiffe://tributary/digits/worker");
  Serve(PeerCredentials::FromPem(
            root_, Issue(NewAuthority(), "digits", PeerRole::kCoordinator))
            .value());
  EXPECT_EQ(Ask(caller->ForChannel(PeerRole::kCoordinator)), refused_);
}

// gRPC's threads close connections while a process exits.
TEST(PeerCredentialsDeathTest, ThreadsMayUseOpenSslUntilTheProcessIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i < 15; ++i) {
    EXPECT_EXIT(
        {
          static std::atomic<int> digests{0};
          for (int thread = 0; thread < 2; ++thread) {
            std::thread([] {
              while (true) {
                EVP_MD_CTX* const digest = EVP_MD_CTX_new();
                EVP_MD* const kind = EVP_MD_fetch(nullptr, "SHA384", nullptr);
                if (kind != nullptr) EVP_DigestInit_ex(digest, kind, nullptr);
                EVP_MD_free(kind);
                EVP_MD_CTX_free(digest);
                ++digests;
              }
            }).detach();
          }
          while (digests < 100) std::this_thread::yield();
          exit(PeerCredentials::FromFolder("").ok());
        },
        ::testing::ExitedWithCode(0), "");
  }
}

TEST_F(PeerCredentialsTest, NewFilesAreUsedWithoutARestart) {
  WriteFolder("server", authority_, PeerRole::kCoordinator);
  Serve(PeerCredentials::FromFolder(Path("server"), absl::Seconds(1)).value());
  EXPECT_EQ(
      Ask(Of("digits", PeerRole::kWorker)->ForChannel(PeerRole::kCoordinator)),
      "spiffe://tributary/digits/worker");
  const CertificateAuthority next = NewAuthority();
  WriteFolder("next", next, PeerRole::kCoordinator);
  std::filesystem::rename(Path("server"), Path("old"));
  std::filesystem::rename(Path("next"), Path("server"));
  const auto caller = PeerCredentials::FromPem(
      next.ToPem()->certificate, Issue(next, "digits", PeerRole::kServer));
  // Connects again until the server has seen the new files.
  EXPECT_EQ(Ask((*caller)->ForChannel(PeerRole::kCoordinator), /*wait=*/true),
            "spiffe://tributary/digits/server");
}

TEST_F(PeerCredentialsTest, ItsOwnDatesAreThoseOfTheFileAsItIsNow) {
  WriteFolder("tls/worker", authority_, PeerRole::kWorker);  // for a day more
  const auto own = PeerCredentials::FromFolder(Path("tls/worker")).value();
  const absl::Time now = absl::Now();
  EXPECT_TRUE(own->CheckOwnDates(now).ok());
  const absl::Status late = own->CheckOwnDates(now + 2 * kOneDay);
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.message()),
              HasSubstr(Path("tls/worker/tls.crt") + " expired at "));
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("`tributary certificates --out " + Path("tls") + "`"));
  const Credential renewed =
      Issue(authority_, "", PeerRole::kWorker, 30 * kOneDay);
  Write("tls/worker/tls.key", renewed.key);
  Write("tls/worker/tls.crt", renewed.certificate);
  EXPECT_TRUE(own->CheckOwnDates(now + 2 * kOneDay).ok());
  EXPECT_GT(own->OwnFacts()->valid_until, now + 28 * kOneDay);
  std::filesystem::remove(Path("tls/worker/tls.crt"));
  EXPECT_TRUE(own->CheckOwnDates(now).ok()) << "it is being replaced";

  const auto text = Of("digits", PeerRole::kWorker);  // for a day more
  EXPECT_TRUE(text->CheckOwnDates(now).ok());
  EXPECT_THAT(std::string(text->CheckOwnDates(now + 2 * kOneDay).message()),
              HasSubstr("the certificate of this process expired at "));
}

TEST_F(PeerCredentialsTest, AWrongFileIsNamed) {
  const auto error = [this] {
    return std::string(
        PeerCredentials::FromFolder(Path("mine")).status().message());
  };
  EXPECT_EQ(error(), Path("mine/ca.crt") + ": there is no such file");
  WriteFolder("mine", authority_, PeerRole::kWorker);
  EXPECT_EQ(error(), "");
  Write("mine/tls.key", Issue(authority_, "", PeerRole::kWorker).key);
  EXPECT_THAT(error(), HasSubstr("mine/tls.crt: the private key belongs to"));
  WriteFolder("mine", authority_, PeerRole::kWorker);
  Write("mine/ca.crt", Read("mine/tls.crt"));
  EXPECT_THAT(error(), HasSubstr("mine/ca.crt: the certificate is not that of a"
                                 " certificate authority"));
}

}  // namespace
}  // namespace tributary
