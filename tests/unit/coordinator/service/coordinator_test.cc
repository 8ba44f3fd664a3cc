// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/unit/coordinator/service/coordinator_fixture.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
TEST_F(CoordinatorTest, LeadsAWholeJobFromJoiningToSavedWeights) {
  Start(2, 2);
  auto server0 = Join(v1::ROLE_SERVER, store_[0].address());
  auto server1 = Join(v1::ROLE_SERVER, store_[1].address());
  auto worker0 = Join(v1::ROLE_WORKER);
  auto worker1 = Join(v1::ROLE_WORKER);
  EXPECT_EQ(worker1->index(), 1u);
  EXPECT_EQ(worker1->job().name(), "digits");
  ASSERT_TRUE(worker0->DeclareModel(Model()).ok());
  ASSERT_TRUE(worker1->DeclareModel(Model()).ok());
  const v1::Plan plan = server0->GetPlan(1, kSoon).value();
  EXPECT_THAT(plan.servers(),
              ElementsAre(store_[0].address(), store_[1].address()));
  store_[0].Serve(plan);
  store_[1].Serve(plan);

  std::thread other([&] { TrainToEnd(*worker1); });
  EXPECT_EQ(TrainToEnd(*worker0), kTotalSteps);
  other.join();
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_DONE) << all.message;
  ASSERT_EQ(all.steps.size(), static_cast<size_t>(kTotalSteps));
  for (int64_t i = 0; i < kTotalSteps; ++i) {
    EXPECT_EQ(all.steps[i].step, i + 1);
    EXPECT_DOUBLE_EQ(all.steps[i].loss.value(), (9.0 - i) / 2);
  }
  ASSERT_EQ(all.evaluations.size(), 1u);
  EXPECT_DOUBLE_EQ(all.evaluations[0].metrics.at("accuracy"), 0.75);

  EXPECT_EQ(weights_.step, kTotalSteps);
  ASSERT_EQ(weights_.tensors.size(), 2u);
  for (size_t p = 0; p < 2; ++p) {
    for (size_t i = 0; i < weights_.tensors[p].size(); ++i) {
      ASSERT_EQ(weights_.tensors[p][i], 10000.0f * p + i);
    }
  }
  EXPECT_TRUE(absl::IsCancelled(server0->WaitForPlanAfter(1, kSoon)));
  EXPECT_TRUE(absl::IsCancelled(server1->WaitForPlanAfter(1, kSoon)));
  EXPECT_EQ(server0->phase(), v1::JOB_PHASE_DONE);
  EXPECT_TRUE(coordinator_->control().WaitUntilEveryoneKnowsEnd(kSoon));
}

TEST_F(CoordinatorTest, AMemberOfAGroupSaysForWhichRanksItWaits) {
  Start(1, 2);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  std::unique_ptr<Member> workers[2] = {Join(v1::ROLE_WORKER),
                                        Join(v1::ROLE_WORKER)};
  ASSERT_TRUE(workers[0]->DeclareModel(Model()).ok());
  ASSERT_TRUE(workers[0]->GetPlan(1, kSoon).ok());
  const auto exchange = [&](int w, const char* bytes, absl::Duration timeout) {
    return workers[w]->Exchange(1, "data", {1, 0}, bytes, timeout);
  };
  const absl::Status alone = exchange(0, "zero", absl::ZeroDuration()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(alone));
  EXPECT_EQ(alone.message(), "waits for rank 1 in group data");

  std::thread other([&] {
    const absl::Time limit = absl::Now() + kSoon;
    while (workers[0]->display().waiting_for() != "rank 1 in group data" &&
           absl::Now() < limit) {
      std::this_thread::yield();
    }
    EXPECT_EQ(workers[0]->display().waiting_for(), "rank 1 in group data");
    EXPECT_TRUE(exchange(1, "one", kSoon).ok());
  });
  const auto all = exchange(0, "zero", kSoon);
  other.join();
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, ::testing::ElementsAre("one", "zero"));
  EXPECT_EQ(workers[0]->display().waiting_for(), "");
}

// Steps end only when both workers have begun them, as under BSP.
class Rendezvous {
 public:
  // False when the other has not begun `step` in time.
  bool Meet(int worker, int64_t step) {
    absl::MutexLock lock(&mu_);
    begun_[worker] = step;
    const auto met = [&] { return begun_[1 - worker] >= step; };
    return mu_.AwaitWithTimeout(absl::Condition(&met), kSoon);
  }

 private:
  absl::Mutex mu_;
  int64_t begun_[2] = {0, 0};
};

TEST_F(CoordinatorTest, StopRequestEndsAllWorkersAtOneStepAndSavesWeights) {
  Start(1, 2);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  std::unique_ptr<Member> workers[2] = {Join(v1::ROLE_WORKER),
                                        Join(v1::ROLE_WORKER)};
  Declaration model = Model();
  model.total_steps = int64_t{1} << 40;  // it would not end by itself
  ASSERT_TRUE(workers[0]->DeclareModel(model).ok());
  store_[0].Serve(workers[0]->GetPlan(1, kSoon).value());
  ASSERT_TRUE(workers[1]->GetPlan(1, kSoon).ok());

  Rendezvous rendezvous;
  int64_t last[2] = {0, 0};
  const auto train = [&](int w) {
    workers[w]->StartAt(1, 0);
    while (true) {
      const absl::Status status = workers[w]->BeginStep(last[w] + 1);
      if (absl::IsCancelled(status)) break;
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(rendezvous.Meet(w, last[w] + 1)) << "no common step";
      DoStep(*workers[w], ++last[w]);
    }
    Finish(*workers[w]);
  };
  std::thread other([&] { train(1); });
  std::thread stopper([&] {
    EXPECT_FALSE(coordinator_->control().WaitForUpdate(kSoon).phase ==
                 v1::JOB_PHASE_FAILED);
    coordinator_->control().RequestStop();
  });
  train(0);
  other.join();
  stopper.join();
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_DONE) << all.message;
  EXPECT_EQ(last[0], last[1]);
  EXPECT_EQ(weights_.step, last[0]);
  EXPECT_TRUE(coordinator_->control().Totals().stopped);
  EXPECT_TRUE(absl::IsCancelled(server->WaitForPlanAfter(1, kSoon)));
}

// Before a stop is settled, a process that takes a lost rank over must say how
// far that rank had come. That may take longer than a silent coordinator is
// tolerated, which is 1 ms here.
TEST_F(CoordinatorTest, AStopWaitsForEveryRankAsLongAsTheCoordinatorIsHeard) {
  Start(1, 2);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  Member::Options impatient;
  impatient.coordinator = coordinator_->address();
  impatient.role = v1::ROLE_WORKER;
  impatient.timeouts.lost = absl::Milliseconds(1);
  auto worker0 = Member::Join(impatient).value();
  auto worker1 = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker0->DeclareModel(Model()).ok());
  ASSERT_TRUE(worker0->GetPlan(1, kSoon).ok());
  worker0->StartAt(1, 0);
  ASSERT_TRUE(worker0->BeginStep(1).ok());
  coordinator_->control().RequestStop();
  const absl::Time limit = absl::Now() + kSoon;
  while (worker0->phase() != v1::JOB_PHASE_STOPPING && absl::Now() < limit) {
    std::this_thread::yield();
  }
  absl::Status held = absl::UnknownError("it still waits");
  absl::Notification over;
  std::thread waiting([&] {
    held = worker0->BeginStep(2);
    over.Notify();
  });
  EXPECT_FALSE(over.WaitForNotificationWithTimeout(absl::Milliseconds(300)));
  worker1->StartAt(1, 0);
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(held)) << held;
}

TEST_F(CoordinatorTest, AGroupThatBreaksGetsANewPlanThoughNobodyIsLost) {
  Coordinator::Options options;
  options.job = Job(0, 2);
  options.job.mutable_strategy()->mutable_all_reduce();
  coordinator_ = Coordinator::Start(std::move(options)).value();
  auto worker0 = Join(v1::ROLE_WORKER);
  auto worker1 = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker0->DeclareModel(Model()).ok());
  ASSERT_TRUE(worker0->GetPlan(1).ok());
  ASSERT_TRUE(worker1->GetPlan(1).ok());
  worker0->Follow([](MemberState& state, int64_t /*now_micros*/) {
    state.BreakGroup(1, "rank 1 is gone: reset");
    return true;
  });
  EXPECT_TRUE(worker0->WaitForPlanAfter(1, kSoon).ok());
  EXPECT_TRUE(worker1->WaitForPlanAfter(1, kSoon).ok());
  EXPECT_EQ(worker0->GetPlan(2)->epoch(), 2u);
  EXPECT_EQ(worker1->GetPlan(2)->epoch(), 2u);
  EXPECT_EQ(coordinator_->control().Totals().workers_lost, 0u);
  EXPECT_EQ(coordinator_->control().Totals().rollbacks, 1u);
}

TEST_F(CoordinatorTest, AJobThatRunsNamesNothingThatItWaitsFor) {
  Start(1, 1);
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker->DeclareModel(Model()).ok());
  ASSERT_TRUE(worker->GetPlan(1).ok());
  std::string waits_for;
  worker->Follow([&](MemberState& state, int64_t /*now_micros*/) {
    waits_for = state.waits_for();
    return state.contact().answers() >= 2;
  });
  EXPECT_EQ(waits_for, "");
}

// 500 calls on one channel, all of which would wait.
TEST_F(CoordinatorTest, CallsOfStrangersThatWaitDoNotDisturbAJob) {
  Start(1, 1);
  constexpr int kCalls = 500;
  const auto stub = v1::CoordinatorService::NewStub(grpc::CreateChannel(
      coordinator_->address(), grpc::InsecureChannelCredentials()));
  struct Call {
    grpc::ClientContext context;
    v1::Plan plan;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::Plan>> reader;
  };
  grpc::CompletionQueue queue;
  std::vector<Call> calls(kCalls);
  v1::GetPlanRequest request;
  request.set_min_epoch(99);
  request.set_wait_ms(10'000);
  for (Call& call : calls) {
    call.reader = stub->AsyncGetPlan(&call.context, request, &queue);
    call.reader->Finish(&call.plan, &call.status, &call);
  }
  auto server = Join(v1::ROLE_SERVER, store_[0].address());
  auto worker = Join(v1::ROLE_WORKER);
  ASSERT_TRUE(worker->DeclareModel(Model()).ok());
  const v1::Plan plan = worker->GetPlan(1).value();
  store_[0].Serve(plan);
  EXPECT_EQ(TrainToEnd(*worker), kTotalSteps);
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_DONE) << all.message;
  EXPECT_TRUE(absl::IsCancelled(server->WaitForPlanAfter(1, kSoon)));
  EXPECT_TRUE(worker->end().ok()) << worker->end();
  int refused = 0;
  for (Call& call : calls) call.context.TryCancel();
  for (int i = 0; i < kCalls; ++i) {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    const grpc::StatusCode code = static_cast<Call*>(tag)->status.error_code();
    refused += code == grpc::StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
  }
  EXPECT_GT(refused, kCalls / 2);
}

TEST_F(CoordinatorTest, PlanThatIsLateNamesWhoIsMissing) {
  Start(1, 2);
  auto worker = Join(v1::ROLE_WORKER);
  const absl::Status status =
      worker->GetPlan(1, absl::Milliseconds(20)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 0, worker 1, the model"));
}

// The sentence about a thousand who are missing travels as metadata.
TEST_F(CoordinatorTest, OneOfAThousandWaitsUntilTheStartTimeout) {
  Coordinator::Options options;
  options.job = Job(1, 1000);
  options.timeouts.start = absl::Seconds(3);
  coordinator_ = Coordinator::Start(std::move(options)).value();
  auto worker = Join(v1::ROLE_WORKER);
  const absl::Status late = worker->GetPlan(1, absl::Milliseconds(20)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()),
              HasSubstr("server 0, worker 1, worker 2, worker 3, worker 4, "
                        "worker 5, worker 6, worker 7, worker 8, worker 9 and "
                        "991 more"));
  const absl::Status end = worker->GetPlan(1).status();
  EXPECT_TRUE(absl::IsAborted(end)) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("waited 3."));
}

TEST_F(CoordinatorTest, SnapshotTellsWhoIsThere) {
  Start(1, 1);
  EXPECT_EQ(coordinator_->control().Snapshot().message(),
            "waiting for server 0, worker 0, the model");
  auto worker = Join(v1::ROLE_WORKER);
  auto client =
      CoordinatorClient::Create({.address = coordinator_->address()}).value();
  const v1::JobStatusResponse status = client->GetJobStatus(kSoon).value();
  EXPECT_EQ(status.name(), "digits");
  EXPECT_EQ(status.phase(), v1::JOB_PHASE_WAITING);
  ASSERT_EQ(status.members_size(), 2);
  EXPECT_FALSE(status.members(0).alive());
  EXPECT_TRUE(status.members(1).alive());
  EXPECT_EQ(status.members(1).role(), v1::ROLE_WORKER);
}

TEST_F(CoordinatorTest, GrpcsOwnHealthAndReflectionAnswer) {
  Start(1, 1);
  const auto channel = grpc::CreateChannel(coordinator_->address(),
                                           grpc::InsecureChannelCredentials());
  using grpc::internal::RpcMethod;
  grpc::ClientContext check;
  v1::HealthCheckRequest request;
  request.set_service("tributary.v1.CoordinatorService");
  v1::HealthCheckResponse health;
  ASSERT_TRUE(
      grpc::internal::BlockingUnaryCall(
          channel.get(),
          RpcMethod("/grpc.health.v1.Health/Check", RpcMethod::NORMAL_RPC),
          &check, request, &health)
          .ok());
  EXPECT_EQ(health.status(), v1::HealthCheckResponse::SERVING);

  grpc::ClientContext ask;
  const std::unique_ptr<
      grpc::ClientReaderWriter<v1::ReflectionRequest, v1::ReflectionResponse>>
      stream(grpc::internal::ClientReaderWriterFactory<v1::ReflectionRequest,
                                                       v1::ReflectionResponse>::
                 Create(channel.get(),
                        RpcMethod("/grpc.reflection.v1alpha.ServerReflection/"
                                  "ServerReflectionInfo",
                                  RpcMethod::BIDI_STREAMING),
                        &ask));
  v1::ReflectionRequest list;
  list.set_list_services("*");
  v1::ReflectionResponse services;
  ASSERT_TRUE(stream->Write(list) && stream->Read(&services));
  EXPECT_THAT(services.list_services_response().DebugString(),
              HasSubstr("tributary.v1.CoordinatorService"));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(CoordinatorTest, TakenPortIsAnErrorAndNotShared) {
  Start(1, 1);
  Coordinator::Options options;
  options.job = Job(1, 1);
  options.listen = coordinator_->address();
  const absl::Status status = Coordinator::Start(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.listen));
}

TEST_F(CoordinatorTest, ImpossibleOptionsAreRefused) {
  Coordinator::Options options;
  options.job = Job(0, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(Coordinator::Start(options).status()));
  options.job = Job(1, 5000);
  EXPECT_TRUE(absl::IsInvalidArgument(Coordinator::Start(options).status()));
  options.job = Job(1, 1);
  options.listen = "nowhere";
  EXPECT_TRUE(absl::IsInvalidArgument(Coordinator::Start(options).status()));
}

TEST(MemberTest, MissingCoordinatorIsWaitedForAndThenNamed) {
  Member::Options options;
  options.coordinator = "127.0.0.1:1";  // nobody listens there
  options.role = v1::ROLE_WORKER;
  options.timeouts.join = absl::Milliseconds(100);
  const absl::Status status = Member::Join(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no place at coordinator 127.0.0.1:1 after"));
}

TEST(MemberTest, LostCoordinatorEndsTheJobForItsMembers) {
  Coordinator::Options options;
  options.job = Job(1, 1);
  auto coordinator = Coordinator::Start(options).value();
  Member::Options member_options;
  member_options.coordinator = coordinator->address();
  member_options.role = v1::ROLE_SERVER;
  member_options.address = "127.0.0.1:7000";
  member_options.timeouts.lost = absl::Milliseconds(200);
  auto member = Member::Join(member_options).value();
  coordinator.reset();
  const absl::Status end = member->WaitForPlanAfter(0, kSoon);
  EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("has not answered for"));
}

}  // namespace
}  // namespace tributary
