// SPDX-License-Identifier: Apache-2.0
// A process that has lost its rank keeps its ticket, which never expires. All
// servers must refuse this ticket, also a server that was replaced since then.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/plan_codec.h"
#include "common/wire/crc32c/crc32c.h"
#include "common/wire/deadline.h"
#include "common/wire/grpc_status.h"
#include "common/wire/header_checksum.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/identity/caller_proof.h"
#include "coordinator/service/coordinator.h"
#include "kernels/ops.h"
#include "server/service/parameter_server.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/soon.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"
#include "tributary/v1/parameter_service.grpc.pb.h"
#include "worker/rank/client/memory_link.h"

namespace tributary {
namespace {

using testing::StatusIs;

constexpr int kFloats = 3;

// A job of one server and two ranks. The ranks are plain calls.
class LostPlaceTest : public ::testing::Test {
 protected:
  LostPlaceTest() {
    Coordinator::Options options;
    options.job.set_name("digits");
    options.job.mutable_cluster()->set_servers(1);
    options.job.mutable_cluster()->set_workers(2);
    options.job.mutable_strategy()->mutable_parameter_server();
    options.calls.guard = std::make_shared<CallGuard>(CallGuard::Options{});
    coordinator_ = Coordinator::Start(std::move(options)).value();
    coordination_ = v1::CoordinatorService::NewStub(grpc::CreateChannel(
        coordinator_->address(), grpc::InsecureChannelCredentials()));
  }

  template <typename Stub, typename Request, typename Response>
  static absl::Status Call(Stub* stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                        const Request&,
                                                        Response*),
                           const Request& request, const std::string& ticket,
                           Response* response) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(testing::kSoon));
    CallerProof().WithTicket(ticket).AddTo(&context);
    return ToAbslStatus((stub->*method)(&context, request, response));
  }

  v1::RegisterResponse Join(v1::Role role, const std::string& name,
                            const std::string& address = "") {
    v1::RegisterRequest request;
    request.set_role(role);
    request.set_instance(name);
    request.set_host(name);
    request.set_address(address);
    v1::RegisterResponse place;
    TRIBUTARY_EXPECT_OK(Call(coordination_.get(),
                             &v1::CoordinatorService::Stub::Register, request,
                             "", &place));
    return place;
  }

  // Starts a server that knows nothing of the job, perhaps after another one.
  void StartServer(const std::string& name) {
    const auto guard = std::make_shared<CallGuard>(CallGuard::Options{});
    server_ = ParameterServer::Start({.guard = guard}).value();
    const std::string address = absl::StrCat("127.0.0.1:", server_->port());
    const v1::RegisterResponse place = Join(v1::ROLE_SERVER, name, address);
    guard->SetJob({"digits", place.job_id(), place.job_key()});
    service_ = v1::ParameterService::NewStub(testing::ReadyChannel(address));
  }
  void LoseServer() {
    server_->Shutdown();
    coordinator_->control().MemberLost(v1::ROLE_SERVER, 0, 0, "killed");
  }
  void Serve() {
    ShardSetup setup;
    setup.training.learning_rate = [](int64_t) { return 1.0; };
    setup.training.policy = std::make_unique<BulkSynchronous>();
    setup.ops = ops_.get();
    setup.shares_memory = true;
    TRIBUTARY_ASSERT_OK(server_->Serve(plan_, MakePartitionPlan(plan_).value(),
                                       std::move(setup)));
  }

  absl::Status Declare(const v1::RegisterResponse& worker) {
    v1::DeclareModelRequest request;
    request.set_rank(worker.index());
    request.set_incarnation(worker.incarnation());
    v1::ParameterSpec& spec = *request.add_parameters();
    spec.set_name("w");
    spec.add_shape(kFloats);
    request.set_total_steps(100);
    request.set_steps_per_epoch(10);
    v1::DeclareModelResponse response;
    return Call(coordination_.get(),
                &v1::CoordinatorService::Stub::DeclareModel, request,
                worker.ticket(), &response);
  }
  absl::Status GetPlan(const v1::RegisterResponse& worker) {
    return Call(coordination_.get(), &v1::CoordinatorService::Stub::GetPlan,
                v1::GetPlanRequest(), worker.ticket(), &plan_);
  }

  // Calls in the name of the worker's rank under the present plan.
  template <typename Request, typename Response>
  absl::Status CallFor(const v1::RegisterResponse& worker,
                       grpc::Status (v1::CoordinatorService::Stub::*method)(
                           grpc::ClientContext*, const Request&, Response*)) {
    Request request;
    request.set_incarnation(worker.incarnation());
    if constexpr (requires { request.set_rank(0); }) {
      request.set_rank(worker.index());
    }
    if constexpr (requires { request.set_plan_epoch(0); }) {
      request.set_plan_epoch(plan_.epoch());
    }
    if constexpr (requires { request.set_role(v1::ROLE_WORKER); }) {
      request.set_role(v1::ROLE_WORKER);
      request.set_index(worker.index());
      request.set_job_id(worker.job_id());
      request.set_term(worker.term());
    }
    if constexpr (requires { request.header_crc32c(); }) SignHeader(&request);
    Response response;
    return Call(coordination_.get(), method, request, worker.ticket(),
                &response);
  }

  v1::BlockAddress Address() const {
    v1::BlockAddress address;
    address.set_job_id(plan_.job_id());
    address.set_plan_epoch(plan_.epoch());
    return address;
  }
  absl::Status ReadClock(const v1::RegisterResponse& worker,
                         v1::ClockResponse* clock) {
    v1::ClockRequest request;
    *request.mutable_address() = Address();
    request.set_rank(worker.index());
    request.set_incarnation(worker.incarnation());
    SignHeader(&request);
    return Call(service_.get(), &v1::ParameterService::Stub::ReadClock, request,
                worker.ticket(), clock);
  }
  absl::Status Initialize(const v1::RegisterResponse& worker) {
    v1::InitializeRequest request;
    *request.mutable_address() = Address();
    request.set_payload(std::string(kFloats * sizeof(float), '\0'));
    request.set_crc32c(
        Crc32c(request.payload().data(), request.payload().size()));
    SignHeader(&request);
    v1::InitializeResponse response;
    return Call(service_.get(), &v1::ParameterService::Stub::Initialize,
                request, worker.ticket(), &response);
  }
  absl::Status Push(const v1::RegisterResponse& worker) {
    const std::vector<float> ones(kFloats, 1.0f);
    v1::PushPullRequest request;
    *request.mutable_address() = Address();
    request.set_rank(worker.index());
    request.set_incarnation(worker.incarnation());
    request.set_samples(1);
    request.set_payload(ones.data(), kFloats * sizeof(float));
    request.set_crc32c(Crc32c(ones.data(), kFloats * sizeof(float)));
    SignHeader(&request);
    v1::PushPullResponse response;
    return Call(service_.get(), &v1::ParameterService::Stub::PushPull, request,
                worker.ticket(), &response);
  }
  absl::Status ShareMemory(const v1::RegisterResponse& worker,
                           const v1::ClockResponse& clock) {
    return MemoryLink::Connect(SharedArena::Create(4096).value(), clock,
                               Address(), worker.index(), worker.ticket())
        .status();
  }

  const std::unique_ptr<Ops> ops_ = CreateCpuOps();
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<v1::CoordinatorService::Stub> coordination_;
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<v1::ParameterService::Stub> service_;
  v1::Plan plan_;
};

TEST_F(LostPlaceTest, TheCoordinatorRefusesEveryCallOfAPlaceThatIsLost) {
  using Stub = v1::CoordinatorService::Stub;
  StartServer("server");
  const auto living = Join(v1::ROLE_WORKER, "living");
  const auto lost = Join(v1::ROLE_WORKER, "lost");
  TRIBUTARY_ASSERT_OK(Declare(living));
  TRIBUTARY_ASSERT_OK(GetPlan(living));
  TRIBUTARY_EXPECT_OK(CallFor(lost, &Stub::Heartbeat));
  for (const bool replaced : {false, true}) {
    if (replaced) {
      Join(v1::ROLE_WORKER, "next");
    } else {
      coordinator_->control().MemberLost(v1::ROLE_WORKER, lost.index(), 0, "");
    }
    for (const absl::Status& status :
         {GetPlan(lost), Declare(lost), CallFor(lost, &Stub::Heartbeat),
          CallFor(lost, &Stub::ReportEvaluation),
          CallFor(lost, &Stub::AwaitEvaluation), CallFor(lost, &Stub::Exchange),
          CallFor(lost, &Stub::PutWeights)}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   "incarnation"));
    }
  }
}

TEST_F(LostPlaceTest, ATicketIsWorthNothingAfterAServerWasReplaced) {
  StartServer("server");
  const auto living = Join(v1::ROLE_WORKER, "living");
  const auto lost = Join(v1::ROLE_WORKER, "lost");
  TRIBUTARY_ASSERT_OK(Declare(living));
  TRIBUTARY_ASSERT_OK(GetPlan(lost));
  coordinator_->control().MemberLost(v1::ROLE_WORKER, lost.index(), 0, "gone");
  const auto next = Join(v1::ROLE_WORKER, "next");
  ASSERT_EQ(next.index(), lost.index());
  LoseServer();
  StartServer("another");
  EXPECT_THAT(GetPlan(lost), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      "is not held by"));
  TRIBUTARY_ASSERT_OK(GetPlan(living));
  ASSERT_EQ(plan_.epoch(), 2u);
  Serve();

  // The process that lost the rank calls first, before any living rank.
  v1::ClockResponse clock;
  const auto fenced = StatusIs(absl::StatusCode::kFailedPrecondition, "fenced");
  EXPECT_THAT(ReadClock(lost, &clock), fenced);
  EXPECT_THAT(Initialize(lost), fenced);
  TRIBUTARY_ASSERT_OK(Initialize(living));
  EXPECT_THAT(Push(lost), fenced);
  TRIBUTARY_ASSERT_OK(ReadClock(living, &clock));
  EXPECT_THAT(ShareMemory(lost, clock),
              StatusIs(absl::StatusCode::kUnavailable, "fenced"));
  EXPECT_EQ(server_->GetStatus().contributions(), 0u);

  TRIBUTARY_EXPECT_OK(ShareMemory(living, clock));
  TRIBUTARY_EXPECT_OK(ReadClock(next, &clock));
  TRIBUTARY_EXPECT_OK(ShareMemory(next, clock));
  EXPECT_THAT(Push(next), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                   absl::StrCat(living.index())));
  TRIBUTARY_EXPECT_OK(Push(living));
  EXPECT_EQ(server_->GetStatus().contributions(), 2u);
}

}  // namespace
}  // namespace tributary
