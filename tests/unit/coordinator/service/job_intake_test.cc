// SPDX-License-Identifier: Apache-2.0
// A job that its program submits, over real gRPC.
#include "coordinator/service/intake/job_intake.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "common/base/limits.h"
#include "common/member/coordinator_client.h"
#include "common/member/submit_job.h"
#include "tests/unit/coordinator/service/coordinator_fixture.h"
#include "tributary/v1/coordinator_service.grpc.pb.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr char kSgd[] = "training.optimizer={sgd: {learning_rate: 0.5}}";

class JobIntakeTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    intake_ =
        JobIntake::Start("127.0.0.1:0",
                         {.name = "mine", .overrides = {"cluster.workers=2"}})
            .value();
    address_ = intake_->address();
  }
  absl::Status Submit(const std::vector<std::string>& settings) {
    return SubmitJob(address_, settings, kSoon);
  }
  // The coordinator takes over the port.
  void Replace(const v1::JobSpec& job) {
    Coordinator::Options options;
    options.listen = address_;
    options.listening = intake_->HandOver();
    options.job = job;
    coordinator_ = Coordinator::Start(std::move(options)).value();
  }

  std::unique_ptr<JobIntake> intake_;
  std::string address_;
};

TEST_F(JobIntakeTest, TheFirstWholeJobCounts) {
  EXPECT_FALSE(intake_->Await(absl::ZeroDuration()).has_value());
  ASSERT_TRUE(Submit({kSgd}).ok());
  ASSERT_TRUE(Submit({"training.optimizer=adam"}).ok());
  const auto job = intake_->Await(kSoon);
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->name(), "mine");
  EXPECT_EQ(job->cluster().workers(), 2);
  EXPECT_TRUE(job->training().optimizer().has_sgd());
}

TEST_F(JobIntakeTest, AWrongJobIsRefusedAndAnotherMayFollow) {
  const absl::Status wrong = Submit({kSgd, "cluster.workers=3"});
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(wrong.message(), HasSubstr("cluster.workers is 2"));
  EXPECT_FALSE(intake_->Await(absl::ZeroDuration()).has_value());
  EXPECT_TRUE(Submit({kSgd}).ok());
  EXPECT_TRUE(intake_->Await(kSoon).has_value());
}

TEST_F(JobIntakeTest, OthersWaitForTheProgram) {
  const auto stub = v1::CoordinatorService::NewStub(
      grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  v1::RegisterResponse place;
  const grpc::Status status =
      stub->Register(&context, v1::RegisterRequest(), &place);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              HasSubstr("waits for the job's program to say what it trains"));
}

TEST_F(JobIntakeTest, ItTellsItsStatusAndCanBeStopped) {
  const auto client = CoordinatorClient::Create({.address = address_}).value();
  const v1::JobStatusResponse status = client->GetJobStatus(kSoon).value();
  EXPECT_EQ(status.name(), "mine");
  EXPECT_EQ(status.phase(), v1::JOB_PHASE_WAITING);
  EXPECT_EQ(status.wait().text(),
            "waiting for the job's program to say what it trains");
  EXPECT_FALSE(intake_->stop_reason().has_value());
  v1::StopJobRequest request;
  request.set_checkpoint(true);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(client->StopJob(request, kSoon).status()));
  request.set_checkpoint(false);
  request.set_reason("maintenance");
  EXPECT_TRUE(client->StopJob(request, kSoon).ok());
  EXPECT_EQ(intake_->stop_reason(), "maintenance");
  EXPECT_FALSE(intake_->Await(kSoon).has_value());
}

// Once a job is submitted, the coordinator that follows answers.
TEST_F(JobIntakeTest, AJobThatIsSubmittedIsNotStoppedHere) {
  ASSERT_TRUE(Submit({kSgd}).ok());
  const auto client = CoordinatorClient::Create({.address = address_}).value();
  EXPECT_TRUE(absl::IsUnavailable(
      client->StopJob(v1::StopJobRequest(), absl::Milliseconds(300)).status()));
  EXPECT_FALSE(intake_->stop_reason().has_value());
}

// A server and two ranks come before the job is known, and the coordinator
// takes over the port under them.
TEST_F(JobIntakeTest, MembersSurviveTheChangeOfThePort) {
  const auto join = [this](v1::Role role) {
    Member::Options options{.coordinator = address_, .role = role};
    if (role == v1::ROLE_SERVER) options.address = store_[0].address();
    return Member::Join(std::move(options)).value();
  };
  std::unique_ptr<Member> server, ranks[2];
  std::thread early([&] { server = join(v1::ROLE_SERVER); });
  std::vector<std::thread> threads;
  for (auto& rank : ranks) {
    threads.emplace_back([&] {
      EXPECT_TRUE(Submit({kSgd}).ok());
      rank = join(v1::ROLE_WORKER);
    });
  }
  const auto job = intake_->Await(kSoon);
  ASSERT_TRUE(job.has_value());
  Replace(*job);
  early.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(server->job().has_program());
  EXPECT_TRUE(Submit({"training.optimizer=adam"}).ok());  // compared later
  Declaration model = Model();
  model.total_steps = kOpenEnd;
  model.settings = {kSgd};
  EXPECT_TRUE(ranks[0]->DeclareModel(model).ok());
  EXPECT_TRUE(ranks[1]->DeclareModel(model).ok());
  model.settings = {"training.optimizer=adam"};
  EXPECT_TRUE(absl::IsFailedPrecondition(ranks[1]->DeclareModel(model)));
}

// Otherwise another process could take the port before the coordinator.
TEST_F(JobIntakeTest, ThePortIsNeverFree) {
  ASSERT_TRUE(Submit({kSgd}).ok());
  Coordinator::Options options;
  options.job = *intake_->Await(kSoon);
  options.listen = address_;
  options.listening = intake_->HandOver();
  intake_.reset();
  const auto other = CallGuard::Open();
  EXPECT_TRUE(absl::IsUnavailable(PeerPort::Listen(address_, other).status()));
  // A client that comes in between is answered by the coordinator.
  const int early = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(
      std::stoi(address_.substr(address_.rfind(':') + 1))));
  EXPECT_EQ(connect(early, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  coordinator_ = Coordinator::Start(std::move(options)).value();
  char byte = 0;
  EXPECT_EQ(recv(early, &byte, 1, 0), 1) << "the settings of HTTP/2";
  close(early);
  EXPECT_EQ(coordinator_->address(), address_);
  EXPECT_TRUE(Submit({kSgd}).ok());
}

TEST_F(JobIntakeTest, AJobWithAModelOfItsOwnTakesNoProgram) {
  Start(1, 1);
  const absl::Status status = SubmitJob(coordinator_->address(), {kSgd}, kSoon);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("has a model of its own"));
}

// Ranks of an open end finish at the step at which their programs end.
TEST_F(JobIntakeTest, TheEndOfTheProgramsIsTheEndOfTheJob) {
  ASSERT_TRUE(Submit({kSgd}).ok());
  Replace(*intake_->Await(kSoon));
  Member::Options options{.coordinator = address_, .role = v1::ROLE_SERVER};
  options.address = store_[0].address();
  const auto server = Member::Join(options).value();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&] {
      const auto member =
          Member::Join({.coordinator = address_, .role = v1::ROLE_WORKER})
              .value();
      Declaration model = Model();
      model.total_steps = kOpenEnd;
      EXPECT_TRUE(member->DeclareModel(model).ok());
      const v1::Plan plan = member->GetPlan(1).value();
      if (member->index() == 0) store_[0].Serve(plan);
      member->StartAt(plan.epoch(), 0);
      for (int64_t step = 1; step <= 3; ++step) {
        EXPECT_TRUE(member->BeginStep(step).ok());
        DoStep(*member, step);
      }
      EXPECT_TRUE(member->EndProgram().ok());
      Finish(*member);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  const JobUpdate all = Collect();
  EXPECT_EQ(all.phase, v1::JOB_PHASE_DONE) << all.message;
  EXPECT_EQ(all.steps.size(), 3u);
  const JobTotals totals = coordinator_->control().Totals();
  EXPECT_EQ(totals.steps, 3);
  EXPECT_FALSE(totals.stopped);
  EXPECT_EQ(coordinator_->control().Snapshot().total_steps(), 0);
}

}  // namespace
}  // namespace tributary
