#include "worker/measure/measure_links.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// A far end on a thread of the test.
class MeasureLinksTest : public ::testing::Test {
 protected:
  MeasureLinksTest() {
    auto started = LinkProbeServer::Start("127.0.0.1:0");
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

TEST_F(MeasureLinksTest, TwoFarEndsDoNotShareAnAddress) {
  EXPECT_THAT(LinkProbeServer::Start(address()).status().message(),
              HasSubstr("cannot listen on 127.0.0.1:"));
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
