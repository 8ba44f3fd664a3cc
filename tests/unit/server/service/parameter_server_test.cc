// SPDX-License-Identifier: Apache-2.0
#include "server/service/parameter_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/blocking_call.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/cluster.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

namespace tributary {
namespace {

using testing::Cluster;
using testing::StatusIs;

// Sends plain protobuf messages, as generated code of any language does.
class ParameterServerTest : public ::testing::Test {
 protected:
  explicit ParameterServerTest(int workers = 1)
      : cluster_({.parameters = {{"w", {3}}}, .workers = workers}),
        channel_(testing::ReadyChannel(cluster_.plan().servers(0))),
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
    SignHeader(&request);
    v1::InitializeResponse response;
    grpc::ClientContext context;
    return ToAbslStatus(stub_->Initialize(&context, request, &response));
  }

  absl::Status Send(v1::PushPullRequest request,
                    v1::PushPullResponse* response) {
    SignHeader(&request);
    grpc::ClientContext context;
    return ToAbslStatus(stub_->PushPull(&context, request, response));
  }
  absl::Status Send(const v1::PushPullRequest& request) {
    v1::PushPullResponse response;
    return Send(request, &response);
  }

  // Makes a call whose request need not be a valid message.
  absl::Status SendBytes(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    const grpc::Slice slice(bytes);
    grpc::ClientContext context;
    const std::string path =
        absl::StrCat("/tributary.v1.ParameterService/", method);
    return BlockingCall(&stub, path.c_str(), &context,
                        grpc::ByteBuffer(&slice, 1))
        .status();
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
  SignHeader(&pull);
  v1::PullResponse pulled;
  grpc::ClientContext context;
  TRIBUTARY_EXPECT_OK(ToAbslStatus(stub_->Pull(&context, pull, &pulled)));
  EXPECT_EQ(pulled.payload(), response.payload());
  TRIBUTARY_EXPECT_OK(CheckHeader(response));
  TRIBUTARY_EXPECT_OK(CheckHeader(pulled));
}

// One bit is enough, of any field and wherever the field then lands.
TEST_F(ParameterServerTest, AFlippedBitOfAHeaderIsNeverApplied) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  v1::PushPullRequest push = Push({100, 0, -100});
  push.set_wait_ms(0);
  push.set_step(0);
  push.set_samples(3);
  SignHeader(&push);
  v1::PullRequest pull;
  SetAddress(pull.mutable_address());
  pull.set_finished_steps(0);
  SignHeader(&pull);
  v1::ClockRequest clock;
  SetAddress(clock.mutable_address());
  clock.set_incarnation(1);
  SignHeader(&clock);
  v1::InitializeRequest initialize;
  SetAddress(initialize.mutable_address());
  initialize.set_payload(Bytes({1, 2, 3}));
  initialize.set_crc32c(Crc32c(initialize.payload().data(), 12));
  SignHeader(&initialize);
  v1::StatisticsRequest statistics;
  statistics.set_job_id(cluster_.plan().job_id());
  statistics.set_plan_epoch(cluster_.plan().epoch());
  statistics.set_phase(v1::GRADIENT_NORM);
  statistics.set_step(1);
  SignHeader(&statistics);
  uint64_t damaged = 0;
  for (const auto& [method, bytes] :
       std::vector<std::pair<std::string, std::string>>{
           {"PushPull", push.SerializeAsString()},
           {"Pull", pull.SerializeAsString()},
           {"ReadClock", clock.SerializeAsString()},
           {"Initialize", initialize.SerializeAsString()},
           {"ReadStatistics", statistics.SerializeAsString()}}) {
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      const absl::Status status = SendBytes(method, flipped);
      EXPECT_TRUE(absl::IsDataLoss(status))
          << method << ", bit " << bit << ": " << status;
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 500u);
  const v1::ServerStatusResponse status = cluster_.server(0).GetStatus();
  EXPECT_EQ(status.contributions(), 0u);
  EXPECT_EQ(
      status.rejections().at("checksum") + status.rejections().at("malformed"),
      damaged);
  v1::PushPullResponse response;
  TRIBUTARY_EXPECT_OK(SendBytes("PushPull", push.SerializeAsString()));
  TRIBUTARY_EXPECT_OK(Send(push, &response));
  EXPECT_EQ(response.payload(), Bytes({0, 2, 4}));
}

// Bytes that were recorded on the way come again: after the rank's place has
// been taken, and after the plan has changed.
TEST_F(ParameterServerTest, AReplayedPushIsFencedOff) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  v1::PushPullRequest push = Push({100, 0, -100});
  SignHeader(&push);
  const std::string recorded = push.SerializeAsString();
  TRIBUTARY_EXPECT_OK(SendBytes("PushPull", recorded));
  push.set_step(1);
  SignHeader(&push);
  const std::string next = push.SerializeAsString();
  v1::ClockRequest clock;  // a replacement asks where the rank stands
  SetAddress(clock.mutable_address());
  clock.set_incarnation(2);
  SignHeader(&clock);
  TRIBUTARY_EXPECT_OK(SendBytes("ReadClock", clock.SerializeAsString()));
  for (const std::string& bytes : {recorded, next}) {
    EXPECT_THAT(SendBytes("PushPull", bytes),
                StatusIs(absl::StatusCode::kFailedPrecondition, "taken"));
  }
  EXPECT_EQ(cluster_.server(0).GetStatus().rejections().at("fenced"), 2u);
  EXPECT_EQ(cluster_.server(0).GetStatus().contributions(), 1u);
  EXPECT_EQ(cluster_.server(0).GetStatus().max_version(), 1);

  cluster_.StartOver();
  EXPECT_THAT(SendBytes("PushPull", recorded),
              StatusIs(absl::StatusCode::kFailedPrecondition, "plan epoch"));
  EXPECT_EQ(cluster_.server(0).GetStatus().contributions(), 0u);
}

TEST_F(ParameterServerTest, StepsThatNobodyCanHaveFinishedAreRefused) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  for (int64_t steps : {INT64_MIN, int64_t{-1}, int64_t{1} << 53, INT64_MAX}) {
    v1::PullRequest pull;
    SetAddress(pull.mutable_address());
    pull.set_finished_steps(steps);
    SignHeader(&pull);
    v1::PullResponse pulled;
    grpc::ClientContext context;
    EXPECT_THAT(ToAbslStatus(stub_->Pull(&context, pull, &pulled)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("a pull after ", steps,
                                      " finished steps, wanted 0 or more")));
  }
  EXPECT_EQ(cluster_.server(0).GetStatus().max_staleness(), 0);
}

class TwoWorkersTest : public ParameterServerTest {
 protected:
  TwoWorkersTest() : ParameterServerTest(/*workers=*/2) {}

  // A push that counts, but does not wait for the step.
  v1::PushPullRequest PushOf(uint32_t rank, uint64_t incarnation,
                             const std::vector<float>& gradient) {
    v1::PushPullRequest request = Push(gradient);
    request.set_rank(rank);
    request.set_incarnation(incarnation);
    request.set_wait_ms(0);
    return request;
  }
  // Reads the progress by a client of rank 0's second process.
  absl::StatusOr<RankProgress> ReadProgress(bool recomputes) {
    const auto client = ParameterClient::Connect({.plan = cluster_.plan(),
                                                  .rank = 0,
                                                  .incarnation = 2,
                                                  .recomputes = recomputes});
    return (*client)->ReadProgress();
  }
};

TEST_F(TwoWorkersTest, AReplacementOnAnotherDeviceGivesTheOpenStepAnew) {
  TRIBUTARY_EXPECT_OK(Initialize({1, 2, 3}));
  const auto waits = StatusIs(absl::StatusCode::kDeadlineExceeded, "rank");
  EXPECT_THAT(Send(PushOf(0, 1, {100, 0, 0})), waits);
  const auto clock = ReadProgress(/*recomputes=*/true);
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
  const auto clock = ReadProgress(/*recomputes=*/false);
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
      testing::ReadyChannel(absl::StrCat("127.0.0.1:", (*server)->port())));
  v1::PushPullRequest push = Push({1, 1, 1});
  SignHeader(&push);
  v1::PushPullResponse response;
  grpc::ClientContext context;
  EXPECT_THAT(ToAbslStatus(stub->PushPull(&context, push, &response)),
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
  SignHeader(&pull);
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
