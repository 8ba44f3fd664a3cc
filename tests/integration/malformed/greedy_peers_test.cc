// Peers that send requests without reading answers, or that only stay
// connected: the memory that a server uses for them is bounded, and training
// beside them gives the same bits.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/channel.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/cluster.h"
#include "tests/testing/http/http2_peer.h"

namespace tributary {
namespace {

using testing::Http2Peer;

constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

uint64_t ThreeSamples(uint32_t, int64_t) { return 3; }

std::string PullOf(const testing::Cluster& cluster, int64_t version) {
  v1::PullRequest pull;
  pull.mutable_address()->set_job_id(cluster.plan().job_id());
  pull.mutable_address()->set_plan_epoch(cluster.plan().epoch());
  pull.set_min_version(version);
  pull.set_wait_ms(60'000);
  SignHeader(&pull);
  return Http2Peer::Message(pull.SerializeAsString());
}

// A version has 4 MiB; the peer requests every version and reads none.
TEST(GreedyPeersTest, WhoReadsNothingIsGivenNoMore) {
  constexpr int kSteps = 150;
  constexpr int64_t kBlockBytes = 4 << 20;
  const testing::Cluster::Options options = {
      .parameters = {{"w", {1024, 1024}}}, .bucket_bytes = kBlockBytes};
  const auto undisturbed = testing::TrainToy(options, kSteps, ThreeSamples);
  testing::Cluster cluster(options);
  auto peer = Http2Peer::Connect(cluster.server(0).port());
  ASSERT_NE(peer, nullptr);
  // The peer's calls wait for their versions, at most as many as a block
  // allows.
  const int64_t before = ResidentBytes();
  int64_t most = 0;
  int asked = 0;
  // The server closes a connection whose peer does not answer its ping for 20
  // s, which on a busy machine may happen before everything is requested.
  bool connected = true;
  const auto weights =
      testing::TrainToy(cluster, kSteps, [&](uint32_t, int64_t step) {
        while (connected && asked < step + 10) {
          connected =
              peer->Send(peer->Begin(kPull), PullOf(cluster, asked + 1), true);
          if (connected) ++asked;
        }
        most = std::max(most, ResidentBytes() - before);
        return uint64_t{3};
      });
  std::printf("%d versions of %lld bytes asked for, %lld bytes more at most\n",
              asked, static_cast<long long>(kBlockBytes),
              static_cast<long long>(most));
  EXPECT_EQ(weights, undisturbed);
  EXPECT_GE(asked, connected ? kSteps : 1);
  // The model, its gradients and twice the limit; all versions have 600 MiB.
  EXPECT_LT(most, kSteps * kBlockBytes / 2);
  EXPECT_GT(cluster.server(0).GetStatus().rejections().at("overload"), 0u);
}

// Connections without data, and calls that wait in vain.
TEST(GreedyPeersTest, IdleConnectionsAndHeldCallsCostLittle) {
  constexpr int kConnections = 2000;
  constexpr int kHeldCalls = 500;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < 2 * kConnections + 200) GTEST_SKIP() << "few files";
  const testing::Cluster::Options options = {.parameters = {{"w", {20, 30}}},
                                             .workers = 2};
  const auto undisturbed = testing::TrainToy(options, 20, ThreeSamples);
  testing::Cluster cluster(options);
  const int64_t before = ResidentBytes();
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (int i = 0; i < kConnections; ++i) {
    peers.push_back(Http2Peer::Connect(cluster.server(0).port()));
    ASSERT_NE(peers.back(), nullptr) << i;
  }
  for (int i = 0; i < kHeldCalls; ++i) {
    peers[i]->Send(peers[i]->Begin(kPull), PullOf(cluster, 1'000'000), true);
  }
  EXPECT_EQ(testing::TrainToy(cluster, 20, ThreeSamples), undisturbed);
  const int64_t during = ResidentBytes();
  peers.clear();
  // When the server has answered again, it has seen the connections end.
  cluster.StartOver();
  EXPECT_EQ(testing::TrainToy(cluster, 20, ThreeSamples), undisturbed);
  const int64_t after = ResidentBytes();
  std::printf(
      "%lld bytes before, %lld with %d connections and %d held calls, "
      "%lld after\n",
      static_cast<long long>(before), static_cast<long long>(during),
      kConnections, kHeldCalls, static_cast<long long>(after));
  EXPECT_LT(during - before, int64_t{kConnections} * (128 << 10));
}

}  // namespace
}  // namespace tributary
