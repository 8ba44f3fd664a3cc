// SPDX-License-Identifier: Apache-2.0
// Messages that expand to a thousand times their size: gRPC 1.51 would
// decompress one completely before it checks its size.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/member/coordinator_client.h"
#include "common/wire/channel.h"
#include "common/wire/grpc_status.h"
#include "coordinator/service/coordinator.h"
#include "tests/integration/malformed/malformed.h"
#include "tests/testing/cluster.h"
#include "tests/testing/http/http2_peer.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

using testing::Http2Peer;

constexpr size_t kExpandedBytes = size_t{256} << 20;
constexpr int64_t kMostGrowth = 64 << 20;

// Returns this process's peak memory.
int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

// Returns the answer of the server at `port` to a bomb sent to this method.
std::string SendBomb(int port, const std::string& method,
                     const std::string& encoding, const std::string& bomb) {
  auto peer = Http2Peer::Connect(port);
  if (peer == nullptr) return "cannot connect";
  const uint32_t call = peer->Begin(absl::StrCat("/tributary.v1.", method),
                                    {{"grpc-encoding", encoding}});
  peer->Send(call, Http2Peer::Message(bomb, /*compressed=*/true), true);
  return peer->ReadToEnd(call);
}

class CompressedMessagesTest : public ::testing::Test {
 protected:
  void ExpectRefused(int port, const std::string& method) {
    const int64_t before = PeakBytes();
    EXPECT_PRED2(
        [](const std::string& text, const std::string& piece) {
          return absl::StrContains(text, piece);
        },
        SendBomb(port, method, "gzip", bomb_),
        "Compression algorithm 'gzip' is disabled");
    EXPECT_LT(PeakBytes() - before, kMostGrowth) << method;
  }

  const std::string bomb_ = testing::CompressedZeros(kExpandedBytes);
};

TEST_F(CompressedMessagesTest, AServerRefusesThemUnexpanded) {
  testing::Cluster cluster({.parameters = {{"w", {20, 30}}}});
  const int port = cluster.server(0).port();
  ExpectRefused(port, "ParameterService/PushPull");
  ExpectRefused(port, "ParameterService/GetServerStatus");
}

TEST_F(CompressedMessagesTest, ACoordinatorRefusesThemUnexpanded) {
  Coordinator::Options options;
  options.job.mutable_cluster()->set_servers(1);
  options.job.mutable_cluster()->set_workers(1);
  options.job.mutable_training()->mutable_loss()->mutable_mse();
  auto coordinator = Coordinator::Start(std::move(options));
  TRIBUTARY_ASSERT_OK(coordinator);
  const std::string& address = (*coordinator)->address();
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  ExpectRefused(port, "CoordinatorService/GetJobStatus");
  ExpectRefused(port, "CoordinatorService/ReportEvaluation");
}

// Sends the compression flag without the header, and encodings unknown to gRPC.
TEST_F(CompressedMessagesTest, NothingIsExpandedUnderAnotherName) {
  testing::Cluster cluster({.parameters = {{"w", {20, 30}}}});
  for (const char* encoding : {"identity", "br", "gzip, gzip"}) {
    const int64_t before = PeakBytes();
    SendBomb(cluster.server(0).port(), "ParameterService/PushPull", encoding,
             bomb_);
    EXPECT_LT(PeakBytes() - before, kMostGrowth) << encoding;
  }
  EXPECT_EQ(cluster.server(0).GetStatus().contributions(), 0u);
}

TEST_F(CompressedMessagesTest, TrainingGoesOnBesideThem) {
  const testing::Cluster::Options options = {
      .parameters = {{"w", {20, 30}}, {"x", {500}}},
      .servers = 2,
      .workers = 2};
  const testing::Samples samples = [](uint32_t, int64_t) {
    return uint64_t{3};
  };
  const auto undisturbed = testing::TrainToy(options, 20, samples);
  testing::Cluster cluster(options);
  std::atomic<bool> over{false};
  int sent = 0;
  std::thread attacker([&] {
    for (; !over || sent < 2; ++sent) {
      ExpectRefused(cluster.server(sent % 2).port(), "ParameterService/Pull");
    }
  });
  const auto weights = testing::TrainToy(cluster, 20, samples);
  over = true;
  attacker.join();
  EXPECT_EQ(weights, undisturbed);
}

// A server that answers one call with a bomb.
class BombServer {
 public:
  explicit BombServer(const std::string& bomb)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_, 1);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this, &bomb] {
      auto peer = Http2Peer::Accept(listener_);
      if (peer == nullptr) return;
      const uint32_t call = peer->WaitForCall();
      peer->Answer(call, {{":status", "200"},
                          {"content-type", "application/grpc"},
                          {"grpc-encoding", "gzip"}});
      peer->Send(call, Http2Peer::Message(bomb, /*compressed=*/true), false);
      peer->Answer(call, {{"grpc-status", "0"}});
      peer->ReadToEnd(0);  // until the client disconnects
    });
  }
  ~BombServer() {
    thread_.join();
    close(listener_);
  }
  const std::string& address() const { return address_; }

 private:
  const int listener_;
  std::string address_;
  std::thread thread_;
};

// gRPC ends the call with its reason, or with the end of the stream that this
// reason causes, whichever comes first.
void ExpectNoAnswer(const absl::Status& status) {
  EXPECT_THAT(
      status,
      ::testing::AnyOf(
          testing::StatusIs(absl::StatusCode::kUnimplemented,
                            "Compression algorithm 'gzip' is disabled"),
          testing::StatusIs(absl::StatusCode::kUnknown, "Stream removed")));
}

TEST_F(CompressedMessagesTest, AClientRefusesThemToo) {
  const int64_t before = PeakBytes();
  {
    BombServer server(bomb_);
    const auto stub =
        v1::ParameterService::NewStub(DataChannel(server.address()));
    v1::PullResponse response;
    grpc::ClientContext context;
    ExpectNoAnswer(ToAbslStatus(stub->Pull(&context, {}, &response)));
  }
  {
    BombServer server(bomb_);
    auto client = CoordinatorClient::Create({.address = server.address()});
    TRIBUTARY_ASSERT_OK(client);
    ExpectNoAnswer((*client)->GetJobStatus(absl::Seconds(30)).status());
  }
  EXPECT_LT(PeakBytes() - before, kMostGrowth);
}

}  // namespace
}  // namespace tributary
