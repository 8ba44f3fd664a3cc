// SPDX-License-Identifier: Apache-2.0
#include "common/wire/port/peer_port.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/wire/channel.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/identity/caller_proof.h"
#include "tests/testing/http/http2_peer.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

using testing::Http2Peer;
using testing::StatusIs;

constexpr char kStatus[] = "/tributary.v1.ParameterService/GetServerStatus";
constexpr int64_t kMiB = 1 << 20;

// Waits for another thread, which a busy machine may run late.
bool Eventually(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + testing::kSoon;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

class PeerPortTest : public ::testing::Test,
                     public v1::ParameterService::Service {
 protected:
  PeerPortTest() { guard_->SetJob({.name = "digits", .id = 5, .key = key_}); }
  ~PeerPortTest() override { Stop(); }

  void Start(const std::string& address) {
    auto port = PeerPort::Listen(address, guard_);
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
    Build();
    port_->Start();
  }
  void Build() {
    grpc::ServerBuilder builder;
    port_->AddTo(&builder, 1000);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_ == nullptr) return;
    port_->Stop();
    server_->Shutdown(DeadlineAfter(absl::Seconds(1)));
    server_ = nullptr;
  }

  grpc::Status GetServerStatus(grpc::ServerContext* context,
                               const v1::ServerStatusRequest* request,
                               v1::ServerStatusResponse*) override {
    return ToGrpcStatus(
        guard_->Admit(*context, kStatus, request->ByteSizeLong()).status());
  }
  // The guard asks for a ticket here.
  grpc::Status ReadClock(grpc::ServerContext* context,
                         const v1::ClockRequest* request,
                         v1::ClockResponse*) override {
    return ToGrpcStatus(guard_
                            ->Admit(*context,
                                    "/tributary.v1.ParameterService/ReadClock",
                                    request->ByteSizeLong())
                            .status());
  }

  std::string Ticket(uint32_t rank) const {
    return MakeTicket(key_, {.job_id = 5,
                             .role = v1::ROLE_WORKER,
                             .index = rank,
                             .incarnation = 1});
  }
  absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                    const std::string& ticket = "") {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(testing::kSoon));
    const auto stub = v1::ParameterService::NewStub(channel);
    if (ticket.empty()) {
      v1::ServerStatusResponse response;
      return ToAbslStatus(stub->GetServerStatus(&context, {}, &response));
    }
    context.AddMetadata(kTicketKey, ticket);
    v1::ClockResponse response;
    return ToAbslStatus(stub->ReadClock(&context, {}, &response));
  }
  // `host` must need no lookup: c-ares leaks the name of a lookup that is cut
  // short.
  std::shared_ptr<grpc::Channel> Channel(const std::string& host) const {
    return DataChannel(absl::StrCat(host, ":", port_->port()));
  }
  Http2Peer::Headers TicketHeader(uint32_t rank) const {
    return {{kTicketKey, absl::Base64Escape(Ticket(rank))}};
  }
  // A connection that the port knows to be this worker's.
  std::unique_ptr<Http2Peer> Member(uint32_t rank) {
    auto peer = Http2Peer::Connect(port_->port());
    const uint32_t call = peer->Begin(
        "/tributary.v1.ParameterService/ReadClock", TicketHeader(rank));
    peer->Send(call, Http2Peer::Message(""), true);
    peer->ReadToEnd(call);
    return peer;
  }
  PeerConnections::Totals totals() const {
    return guard_->connections()->totals();
  }

  const std::string key_ = NewJobKey();
  const std::shared_ptr<CallGuard> guard_ =
      std::make_shared<CallGuard>(CallGuard::Options());
  std::unique_ptr<PeerPort> port_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(PeerPortTest, ServesEveryKindOfAddressAndKnowsItsMembers) {
  for (const auto& [listen, host] : {std::pair("127.0.0.1:0", "ipv4:127.0.0.1"),
                                     {"localhost:0", "ipv4:127.0.0.1"},
                                     {"[::1]:0", "ipv6:[::1]"},
                                     {"0.0.0.0:0", "ipv4:127.0.0.1"},
                                     {"[::]:0", "ipv6:[::1]"}}) {
    SCOPED_TRACE(listen);
    Start(listen);
    ASSERT_NE(port_->port(), 0);
    const auto channel = Channel(host);
    TRIBUTARY_EXPECT_OK(Call(channel));
    EXPECT_EQ(totals().connections, 1u);
    EXPECT_EQ(totals().nobodys, 1u);
    TRIBUTARY_EXPECT_OK(Call(channel, Ticket(3)));
    EXPECT_EQ(totals().connections, 1u);
    EXPECT_EQ(totals().nobodys, 0u);
    Stop();
    EXPECT_TRUE(Eventually([&] {
      guard_->connections()->Look();
      return totals().connections == 0;
    }));
  }
}

TEST_F(PeerPortTest, APortThatIsTakenIsNamed) {
  Start("127.0.0.1:0");
  const std::string address = absl::StrCat("127.0.0.1:", port_->port());
  EXPECT_THAT(PeerPort::Listen(address, guard_).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       absl::StrCat("cannot listen on ", address,
                                    ": Address already in use")));
  EXPECT_THAT(PeerPort::Listen("nowhere", guard_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "HOST:PORT"));
}

TEST_F(PeerPortTest, AfterStopConnectionsGoOnAndNoneIsAccepted) {
  Start("127.0.0.1:0");
  const auto channel = Channel("ipv4:127.0.0.1");
  TRIBUTARY_EXPECT_OK(Call(channel));
  port_->Stop();
  TRIBUTARY_EXPECT_OK(Call(channel));
  EXPECT_EQ(Http2Peer::Connect(port_->port()), nullptr);
}

TEST_F(PeerPortTest, MembersAreServedWhileStrangersStayConnected) {
  guard_->connections()->SetLimits({.nobodys = 20});
  Start("127.0.0.1:0");
  const auto channel = Channel("ipv4:127.0.0.1");
  TRIBUTARY_EXPECT_OK(Call(channel, Ticket(0)));
  std::vector<std::unique_ptr<Http2Peer>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(Http2Peer::Connect(port_->port()));
    if (i % 50 == 0) TRIBUTARY_EXPECT_OK(Call(channel, Ticket(0)));
  }
  EXPECT_TRUE(Eventually([&] { return totals().closed == 180; }));
  EXPECT_TRUE(strangers.front()->IsClosed());
  EXPECT_FALSE(strangers.back()->IsClosed());
  // And a member that comes now is served, too.
  TRIBUTARY_EXPECT_OK(Call(Channel("ipv4:127.0.0.1"), Ticket(1)));
}

TEST_F(PeerPortTest, MessagesThatNeverEndAreCutOff) {
  PeerConnections::Limits limits;
  limits.bytes = 8 * kMiB;
  guard_->connections()->SetLimits(limits);
  Start("127.0.0.1:0");
  const auto honest = Channel("ipv4:127.0.0.1");
  TRIBUTARY_EXPECT_OK(Call(honest, Ticket(0)));
  const auto peer = Member(1);
  // Each of the messages is within its own limit.
  const std::string begin =
      Http2Peer::Message(std::string(2 * kMiB, '\0')).substr(0, kMiB);
  int calls = 0;
  while (calls < 100 &&
         peer->Send(peer->Begin("/tributary.v1.ParameterService/ReadClock",
                                TicketHeader(1)),
                    begin, false)) {
    ++calls;
  }
  EXPECT_TRUE(Eventually([&] { return peer->IsClosed(); }));
  EXPECT_GE(calls, 7);  // the end of the eighth may find it closed
  EXPECT_EQ(totals().closed, 1u);
  TRIBUTARY_EXPECT_OK(Call(honest, Ticket(0)));
}

TEST_F(PeerPortTest, CallsThatNeverEndAreCutOff) {
  PeerConnections::Limits limits;
  limits.calls = 100;
  guard_->connections()->SetLimits(limits);
  Start("127.0.0.1:0");
  const auto peer = Member(1);
  for (int call = 0; call < 100; ++call) peer->Begin(kStatus);
  EXPECT_TRUE(Eventually([&] { return totals().calls == 100; }));
  EXPECT_FALSE(peer->IsClosed());
  peer->Begin(kStatus);
  EXPECT_TRUE(Eventually([&] { return peer->IsClosed(); }));
}

// While a server shuts down it waits for its last answers.
TEST_F(PeerPortTest, AfterStopCallsThatNeverEndAreCutOffToo) {
  PeerConnections::Limits limits;
  limits.calls = 100;
  guard_->connections()->SetLimits(limits);
  Start("127.0.0.1:0");
  const auto peer = Member(1);
  port_->Stop();
  for (int call = 0; call < 101; ++call) peer->Begin(kStatus);
  EXPECT_TRUE(Eventually([&] { return totals().closed == 1; }));
}

TEST_F(PeerPortTest, CallsThatEndAreNotCounted) {
  PeerConnections::Limits limits;
  limits.calls = 10;
  limits.bytes = 1000;
  guard_->connections()->SetLimits(limits);
  Start("127.0.0.1:0");
  const auto channel = Channel("ipv4:127.0.0.1");
  for (int call = 0; call < 500; ++call) {
    TRIBUTARY_EXPECT_OK(Call(channel, Ticket(0)));
  }
  EXPECT_EQ(totals().closed, 0u);
}

// Such a peer may be far away, or on a busy machine.
TEST_F(PeerPortTest, ACallerWaitsForAPeerThatTakesItsTimeToAccept) {
  auto port = PeerPort::Listen("127.0.0.1:0", guard_);
  ASSERT_TRUE(port.ok()) << port.status();
  port_ = *std::move(port);
  Build();
  auto call = std::async(std::launch::async,
                         [&] { return Call(Channel("ipv4:127.0.0.1")); });
  EXPECT_EQ(call.wait_for(std::chrono::milliseconds(300)),
            std::future_status::timeout);
  port_->Start();
  TRIBUTARY_EXPECT_OK(call.get());
}

// gRPC's own listener would never accept a connection again.
TEST_F(PeerPortTest, WithoutAFileConnectionsAreRefusedAndLaterAccepted) {
  Start("127.0.0.1:0");
  TRIBUTARY_EXPECT_OK(Call(Channel("ipv4:127.0.0.1")));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const std::filesystem::directory_iterator files("/proc/self/fd"), end;
  const auto open = static_cast<rlim_t>(std::distance(files, end));
  rlimit low = before;
  low.rlim_cur = open + 12;
  setrlimit(RLIMIT_NOFILE, &low);
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (int i = 0; i < 30; ++i) {
    peers.push_back(Http2Peer::Connect(port_->port()));
  }
  peers.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  TRIBUTARY_EXPECT_OK(Call(Channel("ipv4:127.0.0.1")));
}

}  // namespace
}  // namespace tributary
