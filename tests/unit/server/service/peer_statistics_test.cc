// SPDX-License-Identifier: Apache-2.0
#include "server/service/peer_statistics.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/calls/grpc_calls.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/deadline.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

// The other shard's server. Its first calls end as a proxy may end them, or
// with damaged answers; then one answer comes whole.
class Peer final : public v1::ParameterService::Service {
 public:
  int calls() const { return calls_; }

 private:
  grpc::Status ReadStatistics(grpc::ServerContext*,
                              const v1::StatisticsRequest* request,
                              v1::StatisticsResponse* response) override {
    if (!CheckHeader(*request).ok()) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "header");
    }
    const double value = 2.5;
    response->set_count(1);
    response->set_payload(&value, sizeof(value));
    response->set_crc32c(Crc32c(&value, sizeof(value)));
    SignHeader(response);
    switch (calls_++) {
      case 0:
        return grpc::Status(grpc::StatusCode::INTERNAL, "RST_STREAM");
      case 1:
        return grpc::Status(grpc::StatusCode::CANCELLED, "RST_STREAM");
      case 2:
        return grpc::Status(grpc::StatusCode::UNKNOWN, "a proxy's");
      case 3:
        return grpc::Status(grpc::StatusCode::DATA_LOSS, "header");
      case 4:
        response->set_count(2);
        break;
      case 5:
        response->mutable_payload()->back() ^= 1;
        break;
      case 6:
        response->clear_payload();
        break;
    }
    return grpc::Status::OK;
  }

  std::atomic<int> calls_{0};
};

// There is one sum for each grain of a shard: far more than a header may hold.
TEST(PeerStatisticsTest, TheSumsOfALargeModelAreOneMessage) {
  std::vector<double> values(300'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / (i + 1);
  for (const auto& sums : {values, std::vector<double>()}) {
    const auto decoded = DecodeStatistics(EncodeStatistics(sums));
    TRIBUTARY_ASSERT_OK(decoded);
    EXPECT_EQ(*decoded, sums);
  }
}

TEST(PeerStatisticsTest, AsksUntilAnAnswerComesWhole) {
  Peer peer;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&peer);
  const auto server = builder.BuildAndStart();

  const std::vector<std::string> servers = {"127.0.0.1:1",
                                            absl::StrCat("127.0.0.1:", port)};
  grpc::CompletionQueue queue;
  std::optional<std::vector<double>> delivered;
  const auto statistics = std::make_shared<PeerStatistics>(
      std::make_unique<GrpcCalls>(servers, CallerProof(), &queue),
      [&](const v1::StatisticsRequest& request, std::vector<double> values) {
        EXPECT_EQ(request.step(), 12);
        EXPECT_EQ(request.shard(), 1u);
        delivered = std::move(values);
      });
  v1::StatisticsRequest request;
  request.set_shard(1);
  request.set_step(12);
  statistics->Ask(request);
  void* tag = nullptr;
  bool ok = false;
  while (!delivered && !statistics->idle() &&
         queue.AsyncNext(&tag, &ok, DeadlineAfter(absl::Seconds(30))) ==
             grpc::CompletionQueue::GOT_EVENT) {
    static_cast<CompletionTag*>(tag)->Proceed(ok);
  }
  ASSERT_TRUE(delivered.has_value()) << peer.calls() << " calls";
  EXPECT_EQ(*delivered, std::vector<double>{2.5});
  EXPECT_EQ(peer.calls(), 8);
  EXPECT_TRUE(statistics->idle());
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

}  // namespace
}  // namespace tributary
