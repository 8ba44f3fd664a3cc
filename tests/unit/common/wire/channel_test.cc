// SPDX-License-Identifier: Apache-2.0
#include "common/wire/channel.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/host/steady_waits.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Carries bytes between connections to its port and a server's. When the
// server's host dies, the open connections stay open and silent for ever; later
// ones reach the host that has come up again.
class Relay {
 public:
  explicit Relay(int port)
      : target_(port), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_, 16);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Relay() {
    over_ = true;
    thread_.join();
    for (const pollfd& fd : fds_) close(fd.fd);
  }
  int port() const { return port_; }
  void Die() { first_alive_ = num_connections_.load(); }
  int connections() const { return num_connections_; }

 private:
  void Run() {
    fds_.push_back({listener_, POLLIN, 0});
    while (!over_) {
      // Connection c is at 1 + 2c and 2 + 2c; the dead are not looked at.
      const size_t first = 1 + 2 * static_cast<size_t>(first_alive_);
      for (size_t i = 1; i < fds_.size(); ++i) {
        fds_[i].events = i < first ? 0 : POLLIN;
      }
      poll(fds_.data(), fds_.size(), 10);
      for (size_t i = first; i < fds_.size(); ++i) {
        if ((fds_[i].revents & (POLLIN | POLLHUP)) != 0) Carry(i);
      }
      if ((fds_[0].revents & POLLIN) != 0) Accept();
    }
  }
  void Accept() {
    const int client = accept(listener_, nullptr, nullptr);
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(target_);
    EXPECT_EQ(connect(server, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
    fds_.push_back({client, POLLIN, 0});
    fds_.push_back({server, POLLIN, 0});
    ++num_connections_;
  }
  void Carry(size_t i) {
    char bytes[4096];
    const size_t other = i % 2 == 1 ? i + 1 : i - 1;
    const ssize_t n = recv(fds_[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) {
      EXPECT_EQ(
          send(fds_[other].fd, bytes, static_cast<size_t>(n), MSG_NOSIGNAL), n);
    } else if (n == 0) {
      shutdown(fds_[other].fd, SHUT_RDWR);
    }
  }

  const int target_;
  const int listener_;
  int port_ = 0;
  std::vector<pollfd> fds_;  // the thread's
  std::atomic<int> num_connections_{0};
  std::atomic<int> first_alive_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

class AnsweringService final : public v1::ParameterService::Service {
  grpc::Status GetServerStatus(grpc::ServerContext*,
                               const v1::ServerStatusRequest*,
                               v1::ServerStatusResponse*) override {
    return grpc::Status::OK;
  }
};

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&service_);
    LimitConnections(&builder, 100);
    server_ = builder.BuildAndStart();
  }

  static absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           absl::Duration timeout = absl::Seconds(30)) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(timeout));
    context.set_wait_for_ready(true);  // one attempt to connect may fail
    v1::ServerStatusResponse response;
    return ToAbslStatus(v1::ParameterService::NewStub(channel)->GetServerStatus(
        &context, {}, &response));
  }

  AnsweringService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Calls that wait for kTry each are repeated for kTries. In a minute TCP alone
// notices nothing. Calls on a connection that is being given up fail at once,
// many of them if gRPC's own threads are slow.
constexpr absl::Duration kTry = absl::Milliseconds(500);
constexpr absl::Duration kTries = absl::Minutes(1);

TEST_F(ChannelTest, AConnectionToADeadHostIsGivenUp) {
  Relay relay(port_);
  const auto channel =
      DataChannel(absl::StrCat("127.0.0.1:", relay.port()), nullptr,
                  {absl::Milliseconds(300), absl::Milliseconds(300)});
  TRIBUTARY_ASSERT_OK(Call(channel));
  EXPECT_EQ(relay.connections(), 1);
  relay.Die();
  int failed = 0;
  const absl::Duration end = SteadyNow() + kTries;
  absl::Status found;
  do {
    found = Call(channel, kTry);
    if (!found.ok()) ++failed;
  } while (!found.ok() && SteadyNow() < end);
  EXPECT_GE(failed, 1);        // the host was dead
  TRIBUTARY_EXPECT_OK(found);  // and its successor was found
  EXPECT_EQ(relay.connections(), 2);
}

// The tests above set shorter times. A member gives up its coordinator
// after 30 s, so a dead connection must be noticed well before.
TEST(ChannelArgumentsTest, EveryChannelPingsWithinTenSeconds) {
  const grpc::ChannelArguments common = CommonArguments();
  const grpc_channel_args arguments = common.c_channel_args();
  std::map<std::string, int> numbers;
  for (size_t i = 0; i < arguments.num_args; ++i) {
    const grpc_arg& one = arguments.args[i];
    if (one.type == GRPC_ARG_INTEGER) numbers[one.key] = one.value.integer;
  }
  EXPECT_EQ(numbers[GRPC_ARG_KEEPALIVE_TIME_MS], 5000);
  EXPECT_EQ(numbers[GRPC_ARG_KEEPALIVE_TIMEOUT_MS], 5000);
  EXPECT_EQ(numbers[GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS], 1);
  EXPECT_EQ(numbers.at(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA), 0);
}

TEST_F(ChannelTest, ARequestThatNoPeerTakesIsNotSent) {
  const auto channel = DataChannel(absl::StrCat("127.0.0.1:", port_));
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(testing::kSoon));
  context.set_wait_for_ready(true);
  v1::PushPullRequest request;
  request.set_payload(std::string(kMaxMessageBytes, 'x'));
  v1::PushPullResponse response;
  EXPECT_THAT(ToAbslStatus(v1::ParameterService::NewStub(channel)->PushPull(
                  &context, request, &response)),
              testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                "Sent message larger than max"));
}

// A server accepts the pings of an idle client.
TEST_F(ChannelTest, AnIdleConnectionStays) {
  Relay relay(port_);
  const auto channel =
      DataChannel(absl::StrCat("127.0.0.1:", relay.port()), nullptr,
                  {absl::Milliseconds(150), absl::Seconds(30)});
  TRIBUTARY_ASSERT_OK(Call(channel));
  // Waits until the channel is no longer ready, which must not happen.
  EXPECT_FALSE(channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                           DeadlineAfter(absl::Seconds(2))));
  TRIBUTARY_EXPECT_OK(Call(channel));
  EXPECT_EQ(relay.connections(), 1);
}

}  // namespace
}  // namespace tributary
