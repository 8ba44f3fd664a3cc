// SPDX-License-Identifier: Apache-2.0
#include "worker/train/measure/measure_links.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// A far end on a thread of the test.
class MeasureLinksTest : public ::testing::Test {
 protected:
  explicit MeasureLinksTest(absl::Duration silence = kProbeSilence) {
    auto started = LinkProbeServer::Start("127.0.0.1:0", silence);
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    thread_ = std::thread([this] { server_->Serve(); });
  }
  ~MeasureLinksTest() override {
    server_->Stop();
    thread_.join();
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  std::unique_ptr<LinkProbeServer> server_;
  std::thread thread_;
};

TEST_F(MeasureLinksTest, LoopbackHasARateAndALatency) {
  // One caller after the other.
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<LinkMeasurement> link =
        MeasureLink(address(), /*seconds=*/0.01);
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_GT(link->bandwidth, 1e6);
    EXPECT_GE(link->latency, 0);
    EXPECT_LT(link->latency, 1);
  }
}

UniqueFd Connected(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  // A receive that waits for longer fails.
  const timeval most{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
  return fd;
}

// Sends a request of nine bytes: true when the far end hangs up instead of
// answering.
bool IsHungUpOn(int port, char what, char highest_byte) {
  const UniqueFd fd = Connected(port);
  const std::array<char, 9> request = {what, 0, 0, 0, 0, 0, 0, 0, highest_byte};
  EXPECT_EQ(send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL), 9);
  char answer = 0;
  return recv(fd.get(), &answer, 1, 0) == 0;
}

TEST_F(MeasureLinksTest, AWrongRequestIsHungUpOnAndTheNextCallerServed) {
  EXPECT_TRUE(IsHungUpOn(server_->port(), 'x', 0));
  EXPECT_TRUE(IsHungUpOn(server_->port(), 'd', 0x40)) << "4 EiB are too many";
  EXPECT_FALSE(IsHungUpOn(server_->port(), 'e', 0));
}

class SilentCallerTest : public MeasureLinksTest {
 protected:
  SilentCallerTest() : MeasureLinksTest(absl::Milliseconds(200)) {}
};

TEST_F(SilentCallerTest, IsHungUpOnAndTheNextServed) {
  const UniqueFd silent = Connected(server_->port());
  char answer = 0;
  EXPECT_EQ(recv(silent.get(), &answer, 1, 0), 0) << strerror(errno);
  EXPECT_FALSE(IsHungUpOn(server_->port(), 'e', 0));
}

TEST_F(MeasureLinksTest, TwoFarEndsDoNotShareAnAddress) {
  EXPECT_THAT(LinkProbeServer::Start(address()).status().message(),
              HasSubstr("cannot listen on 127.0.0.1:"));
}

// The kernel takes the connection, but nobody serves it.
TEST(LinkProbeTest, AFarEndThatDoesNotAnswerIsAnError) {
  const auto server = LinkProbeServer::Start("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::Status status =
      MeasureLink(absl::StrCat("127.0.0.1:", (*server)->port()), 0.01,
                  /*silence=*/absl::Milliseconds(50))
          .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("does not answer: Connection timed out"));
}

TEST(LinkProbeTest, FarEndWithALimitEndsByItself) {
  const auto server = LinkProbeServer::Start("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->Serve(absl::Milliseconds(1));  // or the test never ends
}

TEST(LinkProbeTest, NobodyThereIsAnError) {
  std::string address;
  {
    const auto server = LinkProbeServer::Start("127.0.0.1:0");
    ASSERT_TRUE(server.ok()) << server.status();
    address = absl::StrCat("127.0.0.1:", (*server)->port());
  }
  const absl::Status status = MeasureLink(address, 0.01).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("cannot reach 127.0.0.1:"));
  EXPECT_THAT(MeasureLink("nowhere", 0.01).status().message(),
              HasSubstr("HOST:PORT"));
}

}  // namespace
}  // namespace tributary
