// SPDX-License-Identifier: Apache-2.0
// Peers that send requests without reading answers, that send many at once, or
// that only stay connected: the memory that a server uses for them is bounded
// (docs/failures.md), and training beside them gives the same bits.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/host/steady_waits.h"
#include "common/wire/channel.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "common/wire/port/peer_connections.h"
#include "tests/testing/cluster.h"
#include "tests/testing/http/http2_peer.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

using testing::Http2Peer;
using testing::StatusIs;

constexpr char kPull[] = "/tributary.v1.ParameterService/Pull";
constexpr char kPush[] = "/tributary.v1.ParameterService/PushPull";

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd"), end;
  return static_cast<size_t>(std::distance(files, end));
}

uint64_t ThreeSamples(uint32_t, int64_t) { return 3; }

// Makes a push of one sample to the only block. Every element of the gradient
// is `value`.
std::string PushOf(const testing::Cluster& cluster, uint32_t rank, int64_t step,
                   size_t elements, float value) {
  v1::PushPullRequest push;
  push.mutable_address()->set_job_id(cluster.plan().job_id());
  push.mutable_address()->set_plan_epoch(cluster.plan().epoch());
  push.set_rank(rank);
  push.set_incarnation(1);
  push.set_step(step);
  push.set_samples(1);
  push.set_total_samples(cluster.plan().num_workers());
  push.set_wait_ms(60'000);
  const std::vector<float> gradient(elements, value);
  push.set_payload(gradient.data(), elements * sizeof(float));
  push.set_crc32c(Crc32c(push.payload().data(), push.payload().size()));
  SignHeader(&push);
  return Http2Peer::Message(push.SerializeAsString());
}

std::string PullOf(const testing::Cluster& cluster, int64_t version) {
  v1::PullRequest pull;
  pull.mutable_address()->set_job_id(cluster.plan().job_id());
  pull.mutable_address()->set_plan_epoch(cluster.plan().epoch());
  pull.set_min_version(version);
  pull.set_wait_ms(60'000);
  SignHeader(&pull);
  return Http2Peer::Message(pull.SerializeAsString());
}

// A version is 4 MiB. The peer requests every version and reads no answer.
TEST(GreedyPeersTest, WhoReadsNothingIsGivenNoMore) {
  constexpr int kSteps = 150;
  constexpr int64_t kBlockBytes = 4 << 20;
  const testing::Cluster::Options options = {
      .parameters = {{"w", {1024, 1024}}}, .bucket_bytes = kBlockBytes};
  const auto undisturbed = testing::TrainToy(options, kSteps, ThreeSamples);
  testing::Cluster cluster(options);
  auto peer = Http2Peer::Connect(cluster.server(0).port());
  ASSERT_NE(peer, nullptr);
  // The peer's calls wait for their versions; a block allows a limited number
  // of waiting calls.
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

// Rank 1 pushes in every step and reads no answer, but its connection answers
// pings. With rate 1 and gradient -1, every weight counts the steps.
TEST(GreedyPeersTest, AWorkerThatReadsNoAnswersHoldsUpNobody) {
  constexpr int kSteps = 100;
  constexpr size_t kElements = 512 << 10;
  constexpr int64_t kVersion = kElements * sizeof(float);  // 2 MiB
  testing::Cluster::Options options = {.parameters = {{"w", {kElements}}},
                                       .workers = 3,
                                       .bucket_bytes = kVersion};
  options.optimizer.learning_rate = 1;
  testing::Cluster cluster(options);
  auto peer = Http2Peer::Connect(cluster.server(0).port(), /*window=*/0);
  ASSERT_NE(peer, nullptr);
  const std::vector<float> minus_one(kElements, -1.0f);
  const std::vector<const float*> gradients = {minus_one.data()};
  std::vector<std::vector<float>> weights(2, std::vector<float>(kElements));
  std::vector<std::unique_ptr<ParameterClient>> clients;
  for (uint32_t rank : {0u, 2u}) clients.push_back(cluster.Connect(rank));
  const std::vector<const float*> start = {weights[0].data()};
  TRIBUTARY_ASSERT_OK(clients[0]->Initialize(start));
  const int64_t before = ResidentBytes();
  int64_t most = 0;
  uint64_t most_unread = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(peer->Send(peer->Begin(kPush),
                           PushOf(cluster, 1, step, kElements, -1), true));
    for (size_t i = 0; i < clients.size(); ++i) {
      const std::vector<float*> received = {weights[i].data()};
      clients[i]->BeginStep(step, 1, gradients, received);
      clients[i]->PushPull(clients[i]->partition().blocks(0)[0]);
    }
    for (auto& client : clients) TRIBUTARY_ASSERT_OK(client->FinishStep());
    most = std::max(most, ResidentBytes() - before);
    most_unread = std::max<uint64_t>(
        most_unread, cluster.server(0).GetStatus().unread_bytes());
  }
  EXPECT_EQ(weights[0], std::vector<float>(kElements, kSteps));
  EXPECT_EQ(weights[1], weights[0]);
  const auto overload =
      cluster.server(0).GetStatus().rejections().at("overload");
  EXPECT_GT(overload, 0u);
  // As many versions as workers, two more and 64 MiB. All would be 200 MiB.
  EXPECT_LE(most_unread, 5 * kVersion + kMaxMessageBytes);
  std::printf("%lld bytes unread at most, %lld bytes more in memory\n",
              static_cast<long long>(most_unread),
              static_cast<long long>(most));
  EXPECT_LT(most, (kSteps - 20) * kVersion);
}

// 64 workers push to one step at the same time, on connections of their own.
TEST(GreedyPeersTest, ABurstOfContributionsIsHeldOnceAndOneInOrderIsNot) {
  constexpr int kWorkers = 64;
  constexpr size_t kElements = 512 << 10;
  constexpr int64_t kGradient = kElements * sizeof(float);  // 2 MiB
  testing::Cluster::Options options = {.parameters = {{"w", {kElements}}},
                                       .workers = kWorkers,
                                       .bucket_bytes = kGradient};
  options.optimizer.learning_rate = 1;
  testing::Cluster cluster(options);
  std::vector<float> weights(kElements);
  const std::vector<const float*> start = {weights.data()};
  auto client = cluster.Connect(0);
  TRIBUTARY_ASSERT_OK(client->Initialize(start));
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (int rank = 0; rank < kWorkers; ++rank) {
    peers.push_back(Http2Peer::Connect(cluster.server(0).port()));
    ASSERT_NE(peers.back(), nullptr);
  }
  ParameterServer& server = cluster.server(0);
  // Pushes to `step` in rank order or in the opposite order. Returns the most
  // bytes that the server held.
  const auto push_all = [&](int64_t step, bool in_order) {
    uint64_t most = 0;
    for (int i = 0; i < kWorkers; ++i) {
      const int rank = in_order ? i : kWorkers - 1 - i;
      const uint64_t counted = server.GetStatus().contributions();
      const std::string push =
          PushOf(cluster, static_cast<uint32_t>(rank), step, kElements,
                 static_cast<float>(rank));
      const uint32_t stream = peers[rank]->Begin(kPush);
      EXPECT_TRUE(peers[rank]->Send(stream, push, true));
      const absl::Duration end = SteadyNow() + absl::Seconds(30);
      while (server.GetStatus().contributions() == counted) {
        if (SteadyNow() > end) {
          ADD_FAILURE() << "rank " << rank << " does not count";
          return most;
        }
        std::this_thread::yield();
      }
      most = std::max<uint64_t>(most, server.GetStatus().held_bytes());
    }
    return most;
  };
  // The limit is eight payloads that wait to be added, and the sum.
  const int64_t before = ResidentBytes();
  EXPECT_LE(push_all(0, /*in_order=*/true), 9 * kGradient);
  const int64_t in_order = ResidentBytes() - before;
  EXPECT_EQ(push_all(1, /*in_order=*/false), (kWorkers - 1) * kGradient);
  const int64_t backwards = ResidentBytes() - before;
  EXPECT_EQ(server.GetStatus().held_bytes(), 0u);
  std::printf("%lld bytes more in rank order, %lld in the opposite order\n",
              static_cast<long long>(in_order),
              static_cast<long long>(backwards));
  EXPECT_LT(in_order, kWorkers * kGradient / 2);
  // 0 / 64 + 1 / 64 + ... + 63 / 64 = 31.5, exactly, in each of two steps.
  const std::vector<float*> received = {weights.data()};
  TRIBUTARY_ASSERT_OK(
      client->Pull({WantedWeights::Kind::kAtLeast, /*number=*/2}, received));
  EXPECT_EQ(weights, std::vector<float>(kElements, -63.0f));
}

// A push that is a message of `bytes` bytes and does not fit the block.
v1::PushPullRequest LargePush(const testing::Cluster& cluster, size_t bytes) {
  v1::PushPullRequest push;
  push.mutable_address()->set_job_id(cluster.plan().job_id());
  push.mutable_address()->set_plan_epoch(cluster.plan().epoch());
  push.set_incarnation(1);
  push.set_samples(1);
  push.set_total_samples(1);
  push.set_payload(std::string(bytes, 'x'));
  SignHeader(&push);
  push.mutable_payload()->resize(bytes - (push.ByteSizeLong() - bytes));
  return push;
}

// The server sets the limit: this peer sends messages of any size.
TEST(GreedyPeersTest, AMessageBeyondTheLimitIsRefusedAndChangesNothing) {
  const testing::Cluster::Options options = {
      .parameters = {{"w", {1024, 1024}}}, .bucket_bytes = 4 << 20};
  const auto undisturbed = testing::TrainToy(options, 4, ThreeSamples);
  testing::Cluster cluster(options);
  auto stub = v1::ParameterService::NewStub(grpc::CreateCustomChannel(
      cluster.plan().servers(0), grpc::InsecureChannelCredentials(),
      CommonArguments()));
  const auto push = [&](size_t bytes) {
    const v1::PushPullRequest request = LargePush(cluster, bytes);
    EXPECT_EQ(request.ByteSizeLong(), bytes);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::PushPullResponse response;
    return ToAbslStatus(stub->PushPull(&context, request, &response));
  };
  // The only worker has the weights of two steps, and no message is under way.
  const auto disturb = [&](uint32_t, int64_t step) {
    if (step != 2) return uint64_t{3};
    EXPECT_THAT(push(kMaxMessageBytes),
                StatusIs(absl::StatusCode::kDataLoss, "damaged on the way"));
    EXPECT_THAT(push(kMaxMessageBytes + 1),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         absl::StrCat("larger than max (", kMaxMessageBytes + 1,
                                      " vs. ", kMaxMessageBytes, ")")));
    EXPECT_EQ(cluster.server(0).GetStatus().contributions(), 2u);
    return uint64_t{3};
  };
  EXPECT_EQ(testing::TrainToy(cluster, 4, disturb), undisturbed);
  EXPECT_EQ(cluster.server(0).GetStatus().contributions(), 4u);
}

// Connections without data, and calls that wait and get no weights.
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
  const size_t files_before = OpenFiles();
  std::vector<std::unique_ptr<Http2Peer>> peers;
  for (int i = 0; i < kConnections; ++i) {
    peers.push_back(Http2Peer::Connect(cluster.server(0).port()));
    ASSERT_NE(peers.back(), nullptr) << i;
  }
  // Uses the last peers: earlier ones are closed, because there are too many.
  for (int i = kConnections - kHeldCalls; i < kConnections; ++i) {
    peers[i]->Send(peers[i]->Begin(kPull), PullOf(cluster, 1'000'000), true);
  }
  EXPECT_EQ(testing::TrainToy(cluster, 20, ThreeSamples), undisturbed);
  const int64_t during = ResidentBytes();
  const auto kept = std::count_if(
      peers.begin(), peers.end(),
      [](const std::unique_ptr<Http2Peer>& peer) { return !peer->IsClosed(); });
  // The training's connections hold some of these places.
  EXPECT_LE(kept, static_cast<int>(PeerConnections::Limits().nobodys));
  EXPECT_GE(kept, static_cast<int>(PeerConnections::Limits().nobodys) - 20);
  peers.clear();
  cluster.StartOver();
  EXPECT_EQ(testing::TrainToy(cluster, 20, ThreeSamples), undisturbed);
  const int64_t after = ResidentBytes();
  std::printf(
      "%lld bytes before, %lld with %d connections and %d held calls, "
      "%lld after\n",
      static_cast<long long>(before), static_cast<long long>(during),
      kConnections, kHeldCalls, static_cast<long long>(after));
  EXPECT_LT(during - before, int64_t{kConnections} * (128 << 10));
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (OpenFiles() >= files_before + 20 && absl::Now() < end) {
    std::this_thread::yield();
  }
  EXPECT_LT(OpenFiles(), files_before + 20) << "closed at both ends";
}

}  // namespace
}  // namespace tributary
