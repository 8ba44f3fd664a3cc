// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/state_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "coordinator/core/evaluation/evaluations.h"
#include "tests/testing/status_matchers.h"

namespace tributary {
namespace {

using testing::StatusIs;

// A job of one server and two workers that runs; the second worker is lost.
v1::CoordinatorState Running() {
  v1::CoordinatorState state;
  state.set_job_id(5);
  state.set_phase(v1::JOB_PHASE_RUNNING);
  state.mutable_job()->mutable_cluster()->set_servers(1);
  state.mutable_job()->mutable_cluster()->set_workers(2);
  v1::DeclareModelRequest& model = *state.mutable_declaration();
  model.add_parameters()->set_name("w");
  model.mutable_parameters(0)->add_shape(3);
  v1::Plan& plan = *state.mutable_plan();
  plan.set_epoch(1);
  *plan.mutable_parameters() = model.parameters();
  plan.add_servers("127.0.0.1:7001");
  plan.set_bucket_bytes(1 << 20);
  plan.set_num_workers(2);
  state.set_last_incarnation(3);
  for (uint32_t i = 0; i < 3; ++i) {
    v1::PlaceState& place = *state.add_places();
    place.mutable_holder()->set_role(i == 0 ? v1::ROLE_SERVER
                                            : v1::ROLE_WORKER);
    place.set_index(i == 2 ? 1 : 0);
    place.set_incarnation(i + 1);
    place.set_alive(i < 2);
  }
  return state;
}

TEST(StateFileTest, WhatIsKeptReadsBackTheSame) {
  const auto read = DecodeState("f", EncodeState(Running()));
  TRIBUTARY_ASSERT_OK(read);
  EXPECT_EQ(read->SerializeAsString(), Running().SerializeAsString());
}

TEST(StateFileTest, EvaluationsReadBackInOrderAndInNoOther) {
  v1::CoordinatorState state = Running();
  const std::vector<EvaluationRecord> evaluations = {
      {.step = 10, .epoch = 1, .samples = 8, .metrics = {{"r2", 0.5}}},
      {.step = 20, .epoch = 2, .samples = 8, .metrics = {{"r2", 0.25}}}};
  for (const EvaluationRecord& record : evaluations) {
    SaveEvaluation(record, state.mutable_evaluations());
  }
  const auto read = DecodeState("f", EncodeState(state));
  TRIBUTARY_ASSERT_OK(read);
  const std::vector<EvaluationRecord> back =
      EvaluationsOf(read->evaluations(), "test");
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[1].step, 20);
  EXPECT_EQ(back[1].epoch, 2);
  EXPECT_EQ(back[1].samples, 8u);
  EXPECT_EQ(back[0].metrics, evaluations[0].metrics);
  state.mutable_evaluations(1)->set_step(10);
  EXPECT_THAT(DecodeState("f", EncodeState(state)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "an evaluation of step 10 follows one of step 10"));
}

TEST(StateFileTest, ATermThatNoneCanFollowIsRefused) {
  v1::CoordinatorState state = Running();
  state.set_term(~uint64_t{0});
  EXPECT_THAT(DecodeState("f", EncodeState(state)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "term "));
}

TEST(StateFileTest, AJobOfTensorRanksReadsBackToo) {
  v1::CoordinatorState state = Running();
  state.mutable_job()->mutable_strategy()->mutable_tensor_parallel()->set_ranks(
      2);
  v1::ParameterSpec& slice =
      *state.mutable_declaration()->mutable_parameters(0);
  slice.set_tensor(2);
  *state.mutable_plan()->mutable_parameters(0) = slice;
  v1::Mesh& mesh = *state.mutable_plan()->mutable_mesh();
  mesh.set_data(1);
  mesh.set_stages(1);
  mesh.set_tensor(2);
  TRIBUTARY_EXPECT_OK(DecodeState("f", EncodeState(state)));
  state.mutable_declaration()->mutable_parameters(0)->set_tensor(3);
  EXPECT_THAT(DecodeState("f", EncodeState(state)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "parameter w is held by stage -1 and tensor rank 2 of a "
                       "mesh of 1 x 2"));
}

TEST(StateFileTest, EveryBitThatIsWrongIsFound) {
  const std::string bytes = EncodeState(Running());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_THAT(DecodeState("f", damaged),
                StatusIs(absl::StatusCode::kDataLoss, "f is damaged"));
  }
}

TEST(StateFileTest, EveryTruncationIsFound) {
  const std::string bytes = EncodeState(Running());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeState("f", absl::string_view(bytes).substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, "f is "));
  }
}

// Found by tests/fuzz/coordinator_state_fuzz.cc: intact files from which a
// coordinator would have continued, but its successor could not have.
TEST(StateFileTest, AnImpossibleStateSaysWhatWasWanted) {
  using Spoil = std::function<void(v1::CoordinatorState*)>;
  const std::pair<Spoil, const char*> cases[] = {
      {[](auto* s) { s->set_phase(static_cast<v1::JobPhase>(9)); },
       "job phase 9, wanted 1 to 5"},
      {[](auto* s) { s->set_restore_step(-1); }, "restore step -1"},
      {[](auto* s) { s->mutable_job()->mutable_cluster()->set_servers(0); },
       "a job of 0 servers and 2 workers, wanted 1 to 256"},
      {[](auto* s) {
         s->mutable_job()->mutable_cluster()->set_workers(1 << 30);
       },
       "1073741824 workers, wanted 1 to 256 and 1 to 1024"},
      {[](auto* s) {
         s->mutable_declaration()->mutable_parameters(0)->set_shape(0, -4);
       },
       "parameter w has extent -4"},
      {[](auto* s) { s->mutable_plan()->add_servers("x:1"); },
       "a plan for 2 servers and 2 workers, the job has 1 and 2"},
      {[](auto* s) { s->mutable_plan()->set_bucket_bytes(0); },
       "bucket_bytes must be 1"},
      {[](auto* s) { s->mutable_places(1)->set_index(2); },
       "place 2 of role 2, the job has 2"},
      {[](auto* s) { s->mutable_places(2)->set_index(0); },
       "place 0 of role 2 stands there twice"},
      {[](auto* s) { s->mutable_places(2)->set_incarnation(4); },
       "incarnation 4 of place 1, wanted 1 to 3"},
  };
  for (const auto& [spoil, wanted] : cases) {
    v1::CoordinatorState state = Running();
    spoil(&state);
    EXPECT_THAT(DecodeState("f", EncodeState(state)),
                StatusIs(absl::StatusCode::kInvalidArgument, wanted));
  }
}

}  // namespace
}  // namespace tributary
