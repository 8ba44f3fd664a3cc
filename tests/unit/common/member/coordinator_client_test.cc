// SPDX-License-Identifier: Apache-2.0
#include "common/member/coordinator_client.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/unique_fd.h"
#include "common/host/address.h"
#include "common/host/listen_socket.h"
#include "common/member/answer_limits.h"
#include "common/security/certificate_authority.h"
#include "common/wire/identity/peer_credentials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/member/fake_coordinator.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A second passes whenever somebody asks for the time: twice an attempt.
class AskedClock final : public Clock {
 public:
  explicit AskedClock(std::function<void(int)> on_ask)
      : on_ask_(std::move(on_ask)) {}
  int64_t NowMicros() const override {
    const int asked = ++asked_;
    on_ask_(asked);
    return int64_t{1'000'000} * asked;
  }
  int attempts() const { return asked_ / 2; }

 private:
  const std::function<void(int)> on_ask_;
  mutable std::atomic<int> asked_{0};
};

// A port of the loopback that refuses connections.
class DeadPort {
 public:
  DeadPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(to);
    sockaddr* const any = reinterpret_cast<sockaddr*>(&to);
    EXPECT_EQ(bind(fd_.get(), any, length), 0);
    EXPECT_EQ(getsockname(fd_.get(), any, &length), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(to.sin_port));
  }

  const std::string& address() const { return address_; }

 private:
  const UniqueFd fd_;
  std::string address_;
};

TEST(CoordinatorClientTest, WhyNobodyCouldBeReachedIsSaid) {
  const DeadPort port;
  const AskedClock clock([](int) {});
  const auto client =
      CoordinatorClient::Create({.address = port.address(), .clock = &clock});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status status =
      (*client)->Register(v1::RegisterRequest(), absl::Seconds(4)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(port.address()));
  EXPECT_THAT(status.message(), HasSubstr("nobody listens there"));
}

// The other end of a handshake that fails cannot say why.
TEST(CoordinatorClientTest, ACertificateThatHasExpiredIsSaid) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(to);
  sockaddr* const any = reinterpret_cast<sockaddr*>(&to);
  ASSERT_EQ(bind(listener.get(), any, length), 0);
  ASSERT_EQ(listen(listener.get(), 16), 0);
  ASSERT_EQ(getsockname(listener.get(), any, &length), 0);
  const absl::Time hour_ago = absl::Now() - absl::Hours(1);
  const auto authority =
      CertificateAuthority::Create({hour_ago, absl::Hours(2)}).value();
  for (const bool expired : {true, false}) {
    const Credential own =
        authority
            .Issue({.identity = {.role = PeerRole::kWorker}},
                   {hour_ago, absl::Minutes(expired ? 30 : 90)})
            .value();
    const AskedClock clock([](int) {});
    const auto client = CoordinatorClient::Create(
        {.address = absl::StrCat("127.0.0.1:", ntohs(to.sin_port)),
         .clock = &clock,
         .attempt_timeout = absl::Milliseconds(50),
         .proof = CallerProof(
             PeerCredentials::FromPem(authority.ToPem()->certificate, own)
                 .value(),
             "")});
    const std::string message(
        (*client)
            ->Register(v1::RegisterRequest(), absl::Seconds(4))
            .status()
            .message());
    EXPECT_EQ(message.find("the certificate of this process expired at ") !=
                  std::string::npos,
              expired)
        << message;
  }
}

// A certificate and key of this authority.
CallerProof ProofOf(const CertificateAuthority& authority, PeerRole role) {
  const Credential own =
      authority
          .Issue({.identity = {.role = role}},
                 {absl::Now() - absl::Hours(1), absl::Hours(2)})
          .value();
  return {PeerCredentials::FromPem(authority.ToPem()->certificate, own).value(),
          ""};
}

// Its machine is overloaded, for example.
TEST(CoordinatorClientTest, ATimeoutAloneDoesNotAskForTls) {
  FakeCoordinator coordinator;
  absl::Notification gave_up;
  coordinator.OnHeartbeat([&gave_up](const v1::HeartbeatRequest&) {
    gave_up.WaitForNotification();
  });
  const auto client = coordinator.Client();
  const absl::Status late =
      client->Heartbeat({}, absl::Milliseconds(300)).status();
  gave_up.Notify();
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_THAT(late.message(),
              AllOf(HasSubstr("could not be reached for 0."),
                    HasSubstr("did not answer in time; its machine may be "
                              "overloaded"),
                    Not(HasSubstr("tls")), Not(HasSubstr("TLS"))));
  EXPECT_GE(UnansweredFor(late), absl::Milliseconds(300));
}

// The kernel connects, and the handshake is not answered: nobody knows yet
// whether it would fail.
TEST(CoordinatorClientTest, ASilentHandshakeNamesTheLoadFirst) {
  const auto port = ListenOn("127.0.0.1:0", 16).value();
  const std::string address = absl::StrCat("127.0.0.1:", PortOf(port[0].get()));
  const auto authority =
      CertificateAuthority::Create({absl::Now(), absl::Hours(2)}).value();
  for (const bool encrypted : {false, true}) {
    const auto client =
        CoordinatorClient::Create(
            {.address = address,
             .proof = encrypted ? ProofOf(authority, PeerRole::kOperator)
                                : CallerProof()})
            .value();
    const absl::Status silent =
        client->GetJobStatus(absl::Milliseconds(300)).status();
    EXPECT_GE(UnansweredFor(silent), absl::Milliseconds(300));
    EXPECT_THAT(
        silent.message(),
        HasSubstr(encrypted ? "did not answer in time; its machine may be "
                              "overloaded; otherwise, does it use TLS"
                            : "did not answer in time; its machine may be "
                              "overloaded; otherwise, does it want --tls?"));
  }
}

// The last attempt may also run into its timeout.
TEST(CoordinatorClientTest, ARefusedHandshakeAsksForTls) {
  const auto authority =
      CertificateAuthority::Create({absl::Now(), absl::Hours(2)}).value();
  const auto other =
      CertificateAuthority::Create({absl::Now(), absl::Hours(2)}).value();
  const Credential own =
      authority
          .Issue({.identity = {.role = PeerRole::kCoordinator}},
                 {absl::Now(), absl::Hours(1)})
          .value();
  const auto tls =
      PeerCredentials::FromPem(authority.ToPem()->certificate, own).value();
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", tls->ForServer(), &port);
  v1::CoordinatorService::Service service;
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  FakeCoordinator clear;
  struct Peer {
    std::string address;
    CallerProof proof;
  };
  const std::string encrypted = absl::StrCat("127.0.0.1:", port);
  for (const Peer& peer :
       {Peer{encrypted, CallerProof()},
        Peer{encrypted, ProofOf(other, PeerRole::kOperator)},
        Peer{clear.address(), ProofOf(authority, PeerRole::kOperator)}}) {
    const auto client = CoordinatorClient::Create(
                            {.address = peer.address, .proof = peer.proof})
                            .value();
    const absl::Status refused =
        client->GetJobStatus(absl::Seconds(1)).status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_EQ(UnansweredFor(refused), std::nullopt) << refused;
  }
}

TEST(CoordinatorClientTest, ACancelledClientWaitsForNobody) {
  const DeadPort port;
  std::unique_ptr<CoordinatorClient> client;
  const AskedClock clock([&client](int asked) {
    if (asked == 3) client->Cancel();
  });
  client =
      CoordinatorClient::Create({.address = port.address(), .clock = &clock})
          .value();
  EXPECT_TRUE(absl::IsCancelled(
      client->Register(v1::RegisterRequest(), absl::Seconds(1000)).status()));
  EXPECT_EQ(clock.attempts(), 1);
}

v1::TakeCheckpointRequest AfterTheFirstStep() {
  v1::TakeCheckpointRequest request;
  request.set_after(1);
  return request;
}

// Another coordinator may take over, but not after so long.
TEST(CoordinatorClientTest, ACheckpointIsNotAwaitedOfACoordinatorThatLeft) {
  const DeadPort port;
  const AskedClock clock([](int) {});
  const auto client =
      CoordinatorClient::Create({.address = port.address(), .clock = &clock})
          .value();
  const absl::Status status =
      client->TakeCheckpoint(AfterTheFirstStep(), absl::Seconds(60)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(clock.attempts(), 10);
}

TEST(CoordinatorClientTest, ACheckpointIsAwaitedAsLongAsTheCoordinatorAnswers) {
  FakeCoordinator coordinator;
  const AskedClock clock([](int) {});
  const absl::Status status =
      coordinator.Client(&clock)
          ->TakeCheckpoint(AfterTheFirstStep(), absl::Seconds(60))
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(), "it waits for worker 1");
  EXPECT_EQ(clock.attempts(), 30);
}

// gRPC reports it with the code of a server without threads, a passing state.
TEST(CoordinatorClientTest, AMessageThatIsTooLargeIsNotAskedForAgain) {
  FakeCoordinator coordinator;
  const auto client = coordinator.Client();
  coordinator.SetMessageBytes(kMaxAnswerBytes - 100);
  EXPECT_TRUE(client->GetJobStatus(absl::Minutes(1)).ok());
  coordinator.SetMessageBytes(kMaxAnswerBytes);
  const absl::Status answer = client->GetJobStatus(absl::Hours(1)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(answer)) << answer;
  EXPECT_THAT(answer.message(),
              HasSubstr("is too large: Received message larger than max"));
  EXPECT_THAT(answer.message(),
              HasSubstr(absl::StrCat(" vs. ", kMaxAnswerBytes)));
  v1::SubmitJobRequest request;
  request.add_settings(std::string(5 << 20, 'x'));  // the fake takes 4 MiB
  const absl::Status asked = client->SubmitJob(request, absl::Hours(1));
  EXPECT_TRUE(absl::IsInvalidArgument(asked)) << asked;
}

}  // namespace
}  // namespace tributary
