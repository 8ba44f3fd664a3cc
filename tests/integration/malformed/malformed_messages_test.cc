// SPDX-License-Identifier: Apache-2.0
// Ten thousand invalid messages to running servers and a running coordinator.
// Their state must not change, and they must continue to work.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "coordinator/service/coordinator.h"
#include "tests/integration/malformed/malformed.h"
#include "tests/testing/cluster.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/relay/message_relay.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"
#include "tributary/v1/parameter_service.grpc.pb.h"

// The address sanitizer keeps up to 256 MiB of freed memory to detect its use.
// With a small quarantine, memory growth shows leaks.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=1:thread_local_quarantine_size_kb=16";
}

namespace tributary {
namespace {

using testing::Cluster;
using testing::CoordinatorMessages;
using testing::Malformed;
using testing::ServerMessages;

constexpr int kConnections = 4;  // to each process
constexpr int kWarmUp = 50'000;  // so that the allocator has its pools
constexpr int kMessages = 50'000;

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class MalformedMessagesTest : public ::testing::Test {
 protected:
  MalformedMessagesTest()
      : cluster_({.parameters = {{"w", {20, 30}}, {"x", {500}}},
                  .servers = 2,
                  .workers = 2}) {
    StartJob();
    for (int s = 0; s < 2; ++s) repeated_.push_back(TrainBlock(s));
  }

  // Starts a job: a server, two workers, the model and the plan.
  void StartJob() {
    Coordinator::Options options;
    options.job.mutable_cluster()->set_servers(1);
    options.job.mutable_cluster()->set_workers(2);
    options.job.mutable_training()->mutable_loss()->mutable_mse();
    options.job.mutable_strategy()
        ->mutable_parameter_server()
        ->set_bucket_bytes(4 << 20);
    options.clock = &clock_;  // stands still, so no lease expires
    coordinator_ = Coordinator::Start(std::move(options)).value();
    control_ = v1::CoordinatorService::NewStub(
        testing::ReadyChannel(coordinator_->address()));
    for (v1::Role role : {v1::ROLE_SERVER, v1::ROLE_WORKER, v1::ROLE_WORKER}) {
      v1::RegisterRequest request;
      request.set_role(role);
      request.set_instance(absl::StrCat("member ", members_.size()));
      request.set_address("10.0.0.1:7000");
      v1::RegisterResponse place;
      grpc::ClientContext context;
      ASSERT_TRUE(control_->Register(&context, request, &place).ok());
      v1::HeartbeatRequest& member = members_.emplace_back();
      member.set_role(role);
      member.set_index(place.index());
      member.set_incarnation(place.incarnation());
      member.set_plan_epoch(1);
      member.set_job_id(place.job_id());
    }
    v1::DeclareModelRequest model;
    model.set_rank(members_[2].index());
    model.set_incarnation(members_[2].incarnation());
    model.add_parameters()->set_name("w");
    model.set_total_steps(10);
    model.set_steps_per_epoch(10);
    v1::DeclareModelResponse none;
    grpc::ClientContext context;
    ASSERT_TRUE(control_->DeclareModel(&context, model, &none).ok());
    plan_ = Plan();
    ASSERT_EQ(plan_.epoch(), 1u);
  }

  v1::Plan Plan() {
    v1::Plan plan;
    grpc::ClientContext context;
    EXPECT_TRUE(control_->GetPlan(&context, {}, &plan).ok());
    return plan;
  }

  // Completes four steps of a server's only block; returns rank 1's last push.
  v1::PushPullRequest TrainBlock(int shard) {
    auto stub = v1::ParameterService::NewStub(
        testing::ReadyChannel(cluster_.plan().servers(shard)));
    const std::string floats(shard == 0 ? 4 * 500 : 4 * 600, '\0');
    v1::InitializeRequest initialize;
    v1::BlockAddress& address = *initialize.mutable_address();
    address.set_job_id(cluster_.plan().job_id());
    address.set_plan_epoch(cluster_.plan().epoch());
    address.set_shard(shard);
    initialize.set_payload(floats);
    initialize.set_crc32c(Crc32c(floats.data(), floats.size()));
    SignHeader(&initialize);
    v1::InitializeResponse none;
    grpc::ClientContext context;
    TRIBUTARY_EXPECT_OK(
        ToAbslStatus(stub->Initialize(&context, initialize, &none)));
    v1::PushPullRequest push;
    *push.mutable_address() = address;
    push.set_incarnation(UINT64_MAX);  // a flipped bit makes it no newer
    push.set_samples(1);
    push.set_payload(std::string(floats.size(), '\x3c'));
    push.set_crc32c(Crc32c(push.payload().data(), push.payload().size()));
    for (int64_t step = 0; step < 4; ++step) {
      push.set_step(step);
      push.set_wait_ms(10'000);
      std::vector<std::thread> ranks;
      for (uint32_t rank : {0u, 1u}) {
        push.set_rank(rank);
        SignHeader(&push);
        ranks.emplace_back([&stub, push] {
          v1::PushPullResponse weights;
          grpc::ClientContext step_context;
          TRIBUTARY_EXPECT_OK(
              ToAbslStatus(stub->PushPull(&step_context, push, &weights)));
        });
      }
      for (std::thread& rank : ranks) rank.join();
    }
    push.set_wait_ms(0);
    SignHeader(&push);
    return push;
  }

  // Sends the messages of connection number `c`: first the warm-up messages,
  // then the others; two meetings follow each part. A third of the connections
  // send to the coordinator.
  void Send(uint32_t c, std::barrier<>* meeting) {
    const bool to_server = c % 3 < 2;
    const v1::PushPullRequest& repeated = repeated_[c % 3 % 2];
    ServerMessages server(cluster_.plan(), repeated, /*seed=*/c);
    CoordinatorMessages coordinator(members_[1], /*seed=*/c);
    testing::MessageSender sender(testing::ReadyChannel(
        to_server ? cluster_.plan().servers(repeated.address().shard())
                  : coordinator_->address()));
    const auto send = [&](int all) {
      for (int i = static_cast<int>(c); i < all; i += 3 * kConnections) {
        Check(&sender, to_server ? server.Next() : coordinator.Next());
      }
    };
    send(kWarmUp);
    meeting->arrive_and_wait();  // the test measures memory
    meeting->arrive_and_wait();
    send(kMessages);
    meeting->arrive_and_wait();
    meeting->arrive_and_wait();
  }

  void Check(testing::MessageSender* sender, const Malformed& message) {
    const absl::Status status =
        sender->Send(message.method, message.bytes).status();
    // Unavailable would mean that the server is gone, unless it waits for a
    // newer plan.
    EXPECT_FALSE(absl::IsUnavailable(status) &&
                 status.message().find("plan epoch") == absl::string_view::npos)
        << message.method << ": " << status;
    if (message.code != absl::StatusCode::kOk) {
      EXPECT_THAT(status, testing::StatusIs(message.code, message.piece))
          << message.method;
    }
    refused_ += !status.ok();
  }

  std::string TrainNextJob() {
    cluster_.StartOver();
    return Sha256Of(testing::TrainToy(
        cluster_, 5, [](uint32_t, int64_t) { return uint64_t{3}; }));
  }
  std::string Sha256Of(const std::vector<std::vector<float>>& weights) const {
    std::vector<const float*> data;
    for (const auto& tensor : weights) data.push_back(tensor.data());
    return WeightsSha256(cluster_.options().parameters, data);
  }

  ManualClock clock_;
  Cluster cluster_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<v1::CoordinatorService::Stub> control_;
  std::vector<v1::HeartbeatRequest> members_;  // of the server and the workers
  v1::Plan plan_;
  std::vector<v1::PushPullRequest> repeated_;  // [shard]
  std::atomic<int> refused_{0};
};

TEST_F(MalformedMessagesTest, AHundredThousandOfThemDoNoHarm) {
  const std::string before[] = {cluster_.server(0).GetStatus().DebugString(),
                                cluster_.server(1).GetStatus().DebugString()};
  std::barrier<> meeting(3 * kConnections + 1);
  std::vector<std::thread> senders;
  for (uint32_t c = 0; c < 3 * kConnections; ++c) {
    senders.emplace_back([this, c, &meeting] { Send(c, &meeting); });
  }
  meeting.arrive_and_wait();
  const int64_t warm_bytes = ResidentBytes();
  meeting.arrive_and_wait();
  meeting.arrive_and_wait();
  const int64_t grown_bytes = ResidentBytes() - warm_bytes;
  meeting.arrive_and_wait();
  for (std::thread& sender : senders) sender.join();
  std::printf("%d of %d refused; %lld bytes resident, %+lld in the storm\n",
              refused_.load(), kWarmUp + kMessages,
              static_cast<long long>(warm_bytes),
              static_cast<long long>(grown_bytes));
  EXPECT_LT(grown_bytes, warm_bytes / 10);
  EXPECT_GT(refused_, (kWarmUp + kMessages) * 8 / 10);

  // No message was applied partly.
  for (int s = 0; s < 2; ++s) {
    const v1::ServerStatusResponse status = cluster_.server(s).GetStatus();
    EXPECT_EQ(status.contributions(), 8u) << "since " << before[s];
    EXPECT_EQ(status.min_version(), 4);
    EXPECT_EQ(status.held_bytes(), 0u);
  }
  EXPECT_EQ(Plan().SerializeAsString(), plan_.SerializeAsString());

  // Both continue: the job with its next step, the servers with the next job.
  for (size_t m = 1; m < members_.size(); ++m) {
    v1::StepReport& step = *members_[m].add_steps();
    step.set_step(1);
    step.set_epoch(1);
    v1::HeartbeatResponse orders;
    grpc::ClientContext context;
    TRIBUTARY_EXPECT_OK(
        ToAbslStatus(control_->Heartbeat(&context, members_[m], &orders)));
    EXPECT_EQ(orders.phase(), v1::JOB_PHASE_RUNNING);
  }
  EXPECT_EQ(coordinator_->control().Snapshot().step(), 1);
  const std::string undisturbed = Sha256Of(testing::TrainToy(
      cluster_.options(), 5, [](uint32_t, int64_t) { return uint64_t{3}; }));
  EXPECT_EQ(TrainNextJob(), undisturbed);
}

}  // namespace
}  // namespace tributary
