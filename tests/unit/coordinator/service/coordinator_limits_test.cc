// SPDX-License-Identifier: Apache-2.0
// The largest answers of a coordinator, through the client of its members.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/member/answer_limits.h"
#include "common/member/coordinator_client.h"
#include "common/plan/partition_plan.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/service/coordinator_fixture.h"

namespace tributary {
namespace {

constexpr size_t kGrpcsOwnLimit = 4 << 20;

class CoordinatorLimitsTest : public ::testing::Test {
 protected:
  void Start(v1::JobSpec job) {
    Coordinator::Options options;
    options.job = std::move(job);
    options.timeouts.lease = absl::Minutes(10);
    coordinator_ = Coordinator::Start(std::move(options)).value();
    client_ =
        CoordinatorClient::Create({.address = coordinator_->address()}).value();
  }
  v1::RegisterResponse Join(v1::Role role, int index) {
    v1::RegisterRequest request;
    request.set_role(role);
    request.set_instance(absl::StrCat(role, "-", index));
    request.set_wanted_index(static_cast<uint32_t>(index));
    request.set_address(absl::StrCat("10.0.0.1:", 1000 + index));
    return coordinator_->control().calls().Register(request).value();
  }

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<CoordinatorClient> client_;
};

// A rank's message to the others, as Gloo's but longer, so that an answer with
// all of them exceeds gRPC's default limit.
v1::ExchangeRequest Addresses(int rank, uint64_t incarnation) {
  v1::ExchangeRequest request;
  request.set_rank(static_cast<uint32_t>(rank));
  request.set_incarnation(incarnation);
  request.set_plan_epoch(1);
  request.set_group("data");
  request.set_payload(std::string(8 << 10, 'a'));
  for (int to = 0; to < kMaxRanks; ++to) {
    request.add_ranks(static_cast<uint32_t>(to));
    request.add_parts(absl::StrCat(rank, " to ", to));
  }
  return request;
}

TEST_F(CoordinatorLimitsTest, AThousandRanksExchangeWhatTheyConnectBy) {
  v1::JobSpec job = Job(0, kMaxRanks);
  job.mutable_strategy()->mutable_all_reduce();
  Start(job);
  std::vector<uint64_t> incarnations;
  for (int rank = 0; rank < kMaxRanks; ++rank) {
    incarnations.push_back(Join(v1::ROLE_WORKER, rank).incarnation());
  }
  v1::DeclareModelRequest model;
  model.set_incarnation(incarnations[0]);
  model.add_parameters()->set_name("w");
  model.mutable_parameters(0)->add_shape(3);
  model.set_total_steps(1);
  model.set_steps_per_epoch(1);
  TRIBUTARY_ASSERT_OK(client_->DeclareModel(model, kSoon));
  const int last = kMaxRanks - 1;
  for (int rank = 0; rank < last; ++rank) {
    const auto waits = coordinator_->control().calls().Exchange(
        Addresses(rank, incarnations[rank]));
    ASSERT_TRUE(absl::IsDeadlineExceeded(waits.status())) << waits.status();
  }
  const auto all =
      client_->Exchange(Addresses(last, incarnations[last]), kSoon, nullptr);
  TRIBUTARY_ASSERT_OK(all);
  EXPECT_GT(all->ByteSizeLong(), kGrpcsOwnLimit);
  ASSERT_EQ(all->payloads_size(), kMaxRanks);
  for (int rank = 0; rank < kMaxRanks; ++rank) {
    EXPECT_EQ(all->payloads(rank).substr(8 << 10),
              absl::StrCat(rank, " to ", last));
  }
}

TEST_F(CoordinatorLimitsTest, TheLargestPlanReachesAMember) {
  Start(Job(1, 1));
  Join(v1::ROLE_SERVER, 0);
  v1::DeclareModelRequest model;
  model.set_incarnation(Join(v1::ROLE_WORKER, 0).incarnation());
  // With one server, they make as many blocks as a plan may have.
  for (size_t p = 0; p < PartitionPlan::kMaxParameters - 1; ++p) {
    const std::string number = absl::StrCat(p);
    v1::ParameterSpec* const spec = model.add_parameters();
    spec->set_name(std::string(60 - number.size(), 'x') + number);
    spec->add_shape(2);
  }
  model.set_total_steps(1);
  model.set_steps_per_epoch(1);
  TRIBUTARY_ASSERT_OK(client_->DeclareModel(model, kSoon));
  const auto plan = client_->GetPlan(1, kSoon);
  TRIBUTARY_ASSERT_OK(plan);
  EXPECT_GT(plan->ByteSizeLong(), kGrpcsOwnLimit);
  EXPECT_EQ(plan->parameters_size(), model.parameters_size());
}

TEST_F(CoordinatorLimitsTest, APlanThatNoMemberTakesIsRefused) {
  Start(Job(1, 1));
  v1::DeclareModelRequest model;
  model.set_incarnation(Join(v1::ROLE_WORKER, 0).incarnation());
  model.add_parameters()->set_name(std::string(kMaxPlanBytes, 'x'));
  model.mutable_parameters(0)->add_shape(2);
  model.set_total_steps(1);
  model.set_steps_per_epoch(1);
  EXPECT_THAT(
      coordinator_->control().calls().DeclareModel(model),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        absl::StrCat("wanted at most ", kMaxPlanBytes)));
}

TEST_F(CoordinatorLimitsTest, AnAnswerThatNoMemberTakesIsNotSent) {
  v1::JobSpec job = Job(1, 1);
  job.mutable_checkpoint()->set_directory(std::string(kMaxAnswerBytes, 'x'));
  Start(std::move(job));
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_instance("worker");
  EXPECT_THAT(client_->Register(request, kSoon).status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "Sent message larger than max"));
}

TEST_F(CoordinatorLimitsTest, AThousandMembersThatWaitForMuchAreShown) {
  Start(Job(PartitionPlan::kMaxShards, kMaxRanks));
  for (const auto& [role, places] :
       {std::pair{v1::ROLE_SERVER, PartitionPlan::kMaxShards},
        std::pair{v1::ROLE_WORKER, kMaxRanks}}) {
    for (int index = 0; index < places; ++index) {
      const v1::RegisterResponse place = Join(role, index);
      v1::HeartbeatRequest beat;
      beat.set_role(role);
      beat.set_index(place.index());
      beat.set_incarnation(place.incarnation());
      beat.set_job_id(place.job_id());
      beat.set_term(place.term());
      beat.mutable_wait()->set_text(std::string(4096, 'w'));
      TRIBUTARY_ASSERT_OK(coordinator_->control().calls().Heartbeat(beat));
    }
  }
  const auto status = client_->GetJobStatus(kSoon);
  TRIBUTARY_ASSERT_OK(status);
  EXPECT_GT(status->ByteSizeLong(), kGrpcsOwnLimit);
  EXPECT_EQ(status->members_size(), PartitionPlan::kMaxShards + kMaxRanks);
}

}  // namespace
}  // namespace tributary
