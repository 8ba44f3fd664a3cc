#include "server/service/parameter_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/channel.h"
#include "common/wire/crc32c.h"
#include "common/wire/grpc_status.h"
#include "tests/testing/cluster.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

using testing::Cluster;
using testing::StatusIs;

// Any language's generated code is such a client: plain protobuf messages.
class ParameterServerTest : public ::testing::Test {
 protected:
  explicit ParameterServerTest(int workers = 1)
      : cluster_({.parameters = {{"w", {3}}}, .workers = workers}),
        channel_(DataChannel(cluster_.plan().servers(0))),
        stub_(v1::ParameterService::NewStub(channel_)) {}

  static std::string Bytes(const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(float));
  }

  void SetAddress(v1::BlockAddress* address) {
    address->set_job_id(cluster_.plan().job_id());
    address->set_plan_epoch(cluster_.plan().epoch());
  }

  v1::PushPullRequest Push(const std::vector<float>& gradient) {
    v1::PushPullRequest request;
    SetAddress(request.mutable_address());
    request.set_incarnation(1);
    request.set_samples(1);
    request.set_wait_ms(1000);
    request.set_payload(Bytes(gradient));
    request.set_crc32c(
        Crc32c(request.payload().data(), request.payload().size()));
    return request;
  }

  absl::Status Initialize(const std::vector<float>& weights) {
    v1::InitializeRequest request;
    SetAddress(request.mutable_address());
    request.set_payload(Bytes(weights));
    request.set_crc32c(
        Crc32c(request.payload().data(), request.payload().size()));
    v1::InitializeResponse response;
    grpc::ClientContext context;
    return ToAbslStatus(stub_->Initialize(&context, request, &response));
  }

  absl::Status Send(const v1::PushPullRequest& request,
                    v1::PushPullResponse* response) {
    grpc::ClientContext context;
    return ToAbslStatus(stub_->PushPull(&context, request, response));
  }
  absl::Status Send(const v1::PushPullRequest& request) {
    v1::PushPullResponse response;
    return Send(request, &response);
  }

  Cluster cluster_;  // SGD, rate 0.01
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ParameterService::Stub> stub_;
};

TEST_F(ParameterServerTest, PlainProtobufMessagesTrain) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  v1::PushPullResponse response;
  TRIBUTARY_EXPECT_OK(Send(Push({100, 0, -100}), &response));
  EXPECT_EQ(response.version(), 1);
  EXPECT_EQ(response.payload(), Bytes({0, 2, 4}));
  EXPECT_EQ(response.crc32c(), Crc32c(response.payload().data(), 12));

  v1::PullRequest pull;
  SetAddress(pull.mutable_address());
  pull.set_min_version(1);
  v1::PullResponse pulled;
  grpc::ClientContext context;
  TRIBUTARY_EXPECT_OK(ToAbslStatus(stub_->Pull(&context, pull, &pulled)));
  EXPECT_EQ(pulled.payload(), response.payload());
}

class TwoWorkersTest : public ParameterServerTest {
 protected:
  TwoWorkersTest() : ParameterServerTest(/*workers=*/2) {}

  // It counts, and is not waited for.
  v1::PushPullRequest PushOf(uint32_t rank, uint64_t incarnation,
                             const std::vector<float>& gradient) {
    v1::PushPullRequest request = Push(gradient);
    request.set_rank(rank);
    request.set_incarnation(incarnation);
    request.set_wait_ms(0);
    return request;
  }
  // By a client of rank 0's second process.
  absl::StatusOr<ParameterClient::Clock> ReadClock(bool recomputes) {
    const auto client = ParameterClient::Connect({.plan = cluster_.plan(),
                                                  .rank = 0,
                                                  .incarnation = 2,
                                                  .recomputes = recomputes});
    return (*client)->ReadClock();
  }
};

TEST_F(TwoWorkersTest, AReplacementOnAnotherDeviceGivesTheOpenStepAnew) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  const auto waits = StatusIs(absl::StatusCode::kDeadlineExceeded, "rank");
  EXPECT_THAT(Send(PushOf(0, 1, {100, 0, 0})), waits);
  const auto clock = ReadClock(/*recomputes=*/true);
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(clock->steps, 0);
  EXPECT_THAT(Send(PushOf(0, 2, {300, 0, 0})), waits);
  v1::PushPullRequest last = PushOf(1, 1, {100, 0, 0});
  last.set_wait_ms(1000);
  v1::PushPullResponse response;
  TRIBUTARY_EXPECT_OK(Send(last, &response));
  EXPECT_EQ(response.payload(), Bytes({-1, 2, 3})) << "1 - 0.01 * 200";
  EXPECT_EQ(cluster_.server(0).GetStatus().conflicts(), 0u);
}

TEST_F(TwoWorkersTest, OnADeviceOfTheSameKindOtherBytesAreAConflict) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  EXPECT_FALSE(Send(PushOf(0, 1, {100, 0, 0})).ok());
  const auto clock = ReadClock(/*recomputes=*/false);
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(clock->steps, 1);
  EXPECT_THAT(Send(PushOf(0, 2, {300, 0, 0})),
              StatusIs(absl::StatusCode::kAborted, "not deterministic"));
}

TEST_F(ParameterServerTest, AWrongAddressSaysWhatWasWanted) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  v1::PushPullRequest request = Push({1, 1, 1});
  request.mutable_address()->set_job_id(5);
  EXPECT_THAT(Send(request), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      "this server has job 77"));
  request = Push({1, 1, 1});
  request.mutable_address()->set_plan_epoch(0);
  EXPECT_THAT(Send(request),
              StatusIs(absl::StatusCode::kFailedPrecondition, "plan epoch 1"));
  request.mutable_address()->set_plan_epoch(9);
  EXPECT_THAT(Send(request),
              StatusIs(absl::StatusCode::kUnavailable,
                       "plan epoch 9; this server has job 77, plan epoch 1 and "
                       "waits for the new one; try again"));
  request = Push({1, 1, 1});
  request.mutable_address()->set_shard(1);
  EXPECT_THAT(Send(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                      "call for shard 1 at the server of 0"));
  request = Push({1, 1, 1});
  request.mutable_address()->set_block(1);
  EXPECT_THAT(Send(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                      "block 1 of shard 0, wanted below 1"));
  const v1::ServerStatusResponse status = cluster_.server(0).GetStatus();
  EXPECT_EQ(status.contributions(), 0u);
  EXPECT_EQ(status.rejections().at("epoch"), 2u);
  EXPECT_EQ(status.rejections().at("address"), 2u);
  EXPECT_EQ(status.rejections().at("shape"), 0u);
}

TEST_F(ParameterServerTest, WithoutAPlanItAsksToTryAgain) {
  auto server = ParameterServer::Start({});
  TRIBUTARY_ASSERT_OK(server);
  auto stub = v1::ParameterService::NewStub(
      DataChannel(absl::StrCat("127.0.0.1:", (*server)->port())));
  v1::PushPullResponse response;
  grpc::ClientContext context;
  EXPECT_THAT(
      ToAbslStatus(stub->PushPull(&context, Push({1, 1, 1}), &response)),
      StatusIs(absl::StatusCode::kUnavailable, "no plan yet"));
}

TEST_F(ParameterServerTest, ATakenPortIsSaid) {
  EXPECT_THAT(
      ParameterServer::Start({.listen = cluster_.plan().servers(0)}),
      StatusIs(absl::StatusCode::kUnavailable, "cannot listen on 127.0.0.1"));
}

TEST_F(ParameterServerTest, GoingHomeAnswersThoseWhoWait) {
  v1::PullRequest pull;
  SetAddress(pull.mutable_address());
  pull.set_wait_ms(30'000);
  v1::PullResponse pulled;
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto reader = stub_->AsyncPull(&context, pull, &queue);
  grpc::Status status;
  reader->Finish(&pulled, &status, nullptr);
  cluster_.server(0).Shutdown();
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_FALSE(status.ok());
}

}  // namespace
}  // namespace tributary
