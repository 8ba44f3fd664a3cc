// SPDX-License-Identifier: Apache-2.0
// A server and its workers on one machine, over real gRPC and real memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/wire/crc32c/crc32c.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "tests/testing/cluster.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/parameter_service.grpc.pb.h"
#include "worker/rank/client/memory_link.h"

namespace tributary {
namespace {

using testing::Cluster;
using testing::StatusIs;

constexpr int kFloats = 3;
constexpr uint64_t kBytes = kFloats * sizeof(float);

// Plain messages of workers that share memory. The rate is 1 and there is no
// momentum, so that weights decrease by the average gradient.
class SharedWeightsTest : public ::testing::Test {
 protected:
  explicit SharedWeightsTest(
      int workers = 1,
      std::function<std::unique_ptr<SyncPolicy>()> policy = nullptr)
      : cluster_({.parameters = {{"w", {kFloats}}},
                  .workers = workers,
                  .optimizer = OptimizerOf("sgd", 1),
                  .policy = std::move(policy),
                  .shares_memory = true}),
        stub_(v1::ParameterService::NewStub(
            testing::ReadyChannel(cluster_.plan().servers(0)))) {
    v1::InitializeRequest request;
    SetAddress(request.mutable_address());
    request.set_payload(std::string(kBytes, '\0'));
    request.set_crc32c(Crc32c(request.payload().data(), kBytes));
    SignHeader(&request);
    v1::InitializeResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->Initialize(&context, request, &response).ok());
    gradient_ = static_cast<float*>(arena_->Allocate(kBytes));
  }

  void SetAddress(v1::BlockAddress* address) {
    address->set_job_id(cluster_.plan().job_id());
    address->set_plan_epoch(cluster_.plan().epoch());
  }

  v1::ClockResponse Clock(uint32_t rank = 0) {
    v1::ClockRequest request;
    SetAddress(request.mutable_address());
    request.set_rank(rank);
    request.set_incarnation(1);
    SignHeader(&request);
    v1::ClockResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ReadClock(&context, request, &response).ok());
    TRIBUTARY_EXPECT_OK(CheckHeader(response));
    return response;
  }

  absl::StatusOr<std::unique_ptr<MemoryLink>> Link(
      const v1::ClockResponse& clock, uint32_t rank = 0) {
    v1::BlockAddress address;
    SetAddress(&address);
    return MemoryLink::Connect(arena_, clock, address, rank);
  }
  std::unique_ptr<MemoryLink> Link(uint32_t rank = 0) {
    return Link(Clock(rank), rank).value();
  }

  // A push of the gradient in shared memory.
  v1::PushPullRequest Push(const MemoryLink& link, int64_t step,
                           uint32_t rank = 0) {
    v1::PushPullRequest request;
    SetAddress(request.mutable_address());
    request.set_rank(rank);
    request.set_incarnation(1);
    request.set_step(step);
    request.set_samples(1);
    request.set_wait_ms(60'000);
    request.set_shared_memory(link.connection());
    v1::SharedRange& range = *request.add_ranges();
    range.set_offset(arena_->OffsetOf(gradient_, kBytes).value());
    range.set_bytes(kBytes);
    return request;
  }

  absl::StatusOr<v1::PushPullResponse> Send(v1::PushPullRequest request) {
    SignHeader(&request);
    v1::PushPullResponse response;
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(testing::kSoon));
    const grpc::Status status = stub_->PushPull(&context, request, &response);
    if (!status.ok()) return ToAbslStatus(status);
    TRIBUTARY_EXPECT_OK(CheckHeader(response));
    return response;
  }

  static std::vector<float> Floats(const Payload& payload) {
    std::vector<float> floats(payload.size() / sizeof(float));
    payload.CopyTo(floats.data());
    return floats;
  }
  static std::vector<float> WeightsOf(const MemoryLink& link,
                                      const v1::PushPullResponse& response) {
    EXPECT_TRUE(response.has_shared_offset());
    EXPECT_TRUE(response.payload().empty());
    const Payload weights =
        link.Weights(response.shared_offset(), kBytes).value();
    EXPECT_EQ(response.crc32c(), weights.ScanFloats().crc32c);
    return Floats(weights);
  }

  const std::shared_ptr<SharedArena> arena_ = SharedArena::Create(4096).value();
  float* gradient_ = nullptr;
  Cluster cluster_;
  std::unique_ptr<v1::ParameterService::Stub> stub_;
};

TEST_F(SharedWeightsTest, GradientsAndWeightsStayWhereTheyAre) {
  const auto link = Link();
  std::copy_n(std::vector<float>{1, 2, 3}.data(), kFloats, gradient_);
  const auto first = Send(Push(*link, 0));
  TRIBUTARY_ASSERT_OK(first);
  EXPECT_EQ(WeightsOf(*link, *first), (std::vector<float>{-1, -2, -3}));
  const auto second = Send(Push(*link, 1));
  TRIBUTARY_ASSERT_OK(second);
  EXPECT_EQ(WeightsOf(*link, *second), (std::vector<float>{-2, -4, -6}));
  const v1::ServerStatusResponse status = cluster_.server(0).GetStatus();
  EXPECT_EQ(status.shared_memory_workers(), 1u);
  EXPECT_EQ(status.bytes_received(), 3 * kBytes);
}

TEST_F(SharedWeightsTest, AGradientThatIsSentMayBeAnsweredInSharedMemory) {
  const auto link = Link();
  v1::PushPullRequest request = Push(*link, 0);
  request.clear_ranges();
  const std::vector<float> gradient = {1, 1, 2};
  request.set_payload(gradient.data(), kBytes);
  request.set_crc32c(Crc32c(gradient.data(), kBytes));
  const auto response = Send(request);
  TRIBUTARY_ASSERT_OK(response);
  EXPECT_EQ(WeightsOf(*link, *response), (std::vector<float>{-1, -1, -2}));
}

// The same contribution, once from memory and once sent, counts once.
TEST_F(SharedWeightsTest, ARepetitionMayTravelTheOtherWay) {
  const auto link = Link();
  std::fill_n(gradient_, kFloats, 1.0f);
  const v1::PushPullRequest shared = Push(*link, 0);
  TRIBUTARY_ASSERT_OK(Send(shared));
  v1::PushPullRequest sent = shared;
  sent.clear_shared_memory();
  sent.clear_ranges();
  sent.set_payload(gradient_, kBytes);
  sent.set_crc32c(Crc32c(gradient_, kBytes));
  const auto again = Send(sent);
  TRIBUTARY_ASSERT_OK(again);
  EXPECT_EQ(again->version(), 1);
  EXPECT_EQ(again->payload().size(), kBytes);
  EXPECT_EQ(cluster_.server(0).GetStatus().duplicates(), 1u);

  gradient_[1] = 5;
  EXPECT_THAT(Send(shared).status(),
              StatusIs(absl::StatusCode::kAborted, "other bytes"));
}

TEST_F(SharedWeightsTest, RefusesMemoryThatIsNotThere) {
  const auto link = Link();
  std::fill_n(gradient_, kFloats, 1.0f);
  v1::PushPullRequest request = Push(*link, 0);
  request.mutable_ranges(0)->set_offset(4096 - kBytes + 1);
  EXPECT_THAT(Send(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "has no 12 bytes"));
  request = Push(*link, 0);
  request.mutable_ranges(0)->set_bytes(UINT64_MAX);
  EXPECT_THAT(Send(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "has no"));
  // The size is refused before the bytes are read, which are not finite either.
  request = Push(*link, 0);
  gradient_[0] = std::numeric_limits<float>::quiet_NaN();
  *request.add_ranges() = request.ranges(0);
  EXPECT_THAT(
      Send(request).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "payload of 24 bytes"));
  EXPECT_THAT(Send(Push(*link, 0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "not finite"));
  gradient_[0] = 1;
  request = Push(*link, 0);
  request.set_shared_memory(link->connection() + 1);
  EXPECT_THAT(Send(request).status(),
              StatusIs(absl::StatusCode::kDataLoss, "send the bytes"));
  TRIBUTARY_EXPECT_OK(Send(Push(*link, 0)));
}

// A small message could otherwise keep a server busy with reading for minutes.
TEST_F(SharedWeightsTest, AGradientOfTheWrongSizeIsRefusedBeforeItIsRead) {
  constexpr uint64_t kArena = 256 << 20;
  constexpr int kRanges = 8000;
  const auto large = SharedArena::Create(kArena).value();
  v1::BlockAddress address;
  SetAddress(&address);
  const auto link = MemoryLink::Connect(large, Clock(), address, 0).value();
  v1::PushPullRequest request = Push(*link, 0);
  request.clear_ranges();
  for (int i = 0; i < kRanges; ++i) request.add_ranges()->set_bytes(kArena);
  EXPECT_THAT(Send(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "payload of"));
}

TEST_F(SharedWeightsTest, AHeaderCoversWhereTheBytesAre) {
  const auto link = Link();
  v1::PushPullRequest request = Push(*link, 0);
  SignHeader(&request);
  request.mutable_ranges(0)->set_offset(request.ranges(0).offset() + 4);
  EXPECT_FALSE(CheckHeader(request).ok());
  v1::PushPullResponse response;
  response.set_shared_offset(0);
  SignHeader(&response);
  response.set_shared_offset(4);
  EXPECT_FALSE(CheckHeader(response).ok());
  v1::ClockResponse clock = Clock();
  (*clock.mutable_shared_memory_socket())[1] ^= 1;
  EXPECT_FALSE(CheckHeader(clock).ok());
  clock = Clock();
  clock.set_shared_memory_token(clock.shared_memory_token() + 1);
  EXPECT_FALSE(CheckHeader(clock).ok());
}

TEST_F(SharedWeightsTest, OnlyWorkersOfThePlanMayConnect) {
  v1::ClockResponse clock = Clock();
  clock.set_shared_memory_token(clock.shared_memory_token() + 1);
  EXPECT_THAT(Link(clock).status(),
              StatusIs(absl::StatusCode::kUnavailable, "token"));
  clock = Clock();
  clock.set_shared_memory_socket("@nobody");
  EXPECT_THAT(Link(clock).status(),
              StatusIs(absl::StatusCode::kUnavailable, "connect"));
  clock = Clock();
  const auto earlier = Link(clock).value();
  cluster_.StartOver();
  EXPECT_THAT(Send(Push(*earlier, 0)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "weights are not initialized"));
  EXPECT_EQ(cluster_.server(0).GetStatus().shared_memory_workers(), 1u);
}

class SharedAsyncWeightsTest : public SharedWeightsTest {
 protected:
  SharedAsyncWeightsTest()
      : SharedWeightsTest(2, [] { return std::make_unique<Asynchronous>(); }) {}
};

// Weights that a worker may be reading must not change while it reads them.
TEST_F(SharedAsyncWeightsTest, WeightsThatAreReadStayUntilTheNextCall) {
  const auto slow = Link(0), quick = Link(1);
  std::fill_n(gradient_, kFloats, 1.0f);
  const auto held = Send(Push(*slow, 0, 0));
  TRIBUTARY_ASSERT_OK(held);
  const std::vector<float> ones(kFloats, -1.0f);
  EXPECT_EQ(WeightsOf(*slow, *held), ones);
  for (int64_t step = 0; step < 10; ++step) {
    TRIBUTARY_ASSERT_OK(Send(Push(*quick, step, 1)));
    EXPECT_EQ(WeightsOf(*slow, *held), ones) << step;
  }
  const auto next = Send(Push(*slow, 1, 0));
  TRIBUTARY_ASSERT_OK(next);
  EXPECT_EQ(WeightsOf(*slow, *next), std::vector<float>(kFloats, -12.0f));
}

class SharedPairTest : public SharedWeightsTest {
 protected:
  SharedPairTest() : SharedWeightsTest(2) {}
};

// A worker gives up a step whose gradient a server still holds, and computes
// the next one in the same memory.
TEST_F(SharedPairTest, AServerKeepsTheGradientOfAStepThatWasGivenUp) {
  auto client = cluster_.Connect(0, arena_);
  TRIBUTARY_ASSERT_OK(client->ReadProgress());
  std::fill_n(gradient_, kFloats, 1.0f);
  std::vector<float> weights(kFloats);
  const float* const gradients[] = {gradient_};
  float* const received[] = {weights.data()};
  client->BeginStep(0, 1, gradients, received);
  client->PushPull(client->partition().blocks(0)[0]);
  while (cluster_.server(0).GetStatus().contributions() == 0) {
    std::this_thread::yield();
  }
  client->Cancel("enough");
  EXPECT_FALSE(client->FinishStep().ok());
  std::fill_n(gradient_, kFloats, 100.0f);

  const auto arena = SharedArena::Create(4096).value();
  v1::BlockAddress address;
  SetAddress(&address);
  const auto link = MemoryLink::Connect(arena, Clock(1), address, 1).value();
  auto* const other = static_cast<float*>(arena->Allocate(kBytes));
  std::fill_n(other, kFloats, 3.0f);
  v1::PushPullRequest request = Push(*link, 0, 1);
  request.mutable_ranges(0)->set_offset(arena->OffsetOf(other, kBytes).value());
  const auto response = Send(request);
  TRIBUTARY_ASSERT_OK(response);
  EXPECT_EQ(WeightsOf(*link, *response), std::vector<float>(kFloats, -2.0f));
}

TEST_F(SharedPairTest, AWorkerThatHasGoneLeavesNothingBehind) {
  auto link = Link();
  std::fill_n(gradient_, kFloats, 1.0f);
  v1::PushPullRequest request = Push(*link, 0);
  request.set_wait_ms(0);
  EXPECT_FALSE(Send(request).ok());  // the step waits for the other rank
  link.reset();
  while (cluster_.server(0).GetStatus().shared_memory_workers() > 0) {
    std::this_thread::yield();
  }
  // The contribution still counts after its link is gone.
  v1::PushPullRequest other;
  SetAddress(other.mutable_address());
  other.set_rank(1);
  other.set_incarnation(1);
  other.set_samples(1);
  other.set_wait_ms(60'000);
  const std::vector<float> gradient(kFloats, 3.0f);
  other.set_payload(gradient.data(), kBytes);
  other.set_crc32c(Crc32c(gradient.data(), kBytes));
  const auto response = Send(other);
  TRIBUTARY_ASSERT_OK(response);
  const std::vector<float> expected(kFloats, -2.0f);
  EXPECT_EQ(
      response->payload(),
      std::string(reinterpret_cast<const char*>(expected.data()), kBytes));
}

}  // namespace
}  // namespace tributary
