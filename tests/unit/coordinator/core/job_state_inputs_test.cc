// SPDX-License-Identifier: Apache-2.0
// How the preprocessing of inputs comes to the coordinator.
#include <gtest/gtest.h>

#include <string>

#include "common/base/limits.h"
#include "coordinator/core/input_meaning.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/coordinator/core/job_state_fixture.h"

namespace tributary {
namespace {

using testing::StatusIs;

class JobStateInputsTest : public JobStateTest {
 protected:
  // Two workers have joined.
  void SetUp() override {
    Open(1, 2);
    server_ = Join(v1::ROLE_SERVER, "s");
    for (const char* name : {"w0", "w1"}) {
      workers_.push_back(Join(v1::ROLE_WORKER, name));
    }
  }

  absl::Status DeclareWith(int worker, const std::string& source,
                           const std::string& reason = "") {
    v1::DeclareModelRequest request;
    request.set_rank(workers_[worker].index());
    request.set_incarnation(workers_[worker].incarnation());
    v1::ParameterSpec* spec = request.add_parameters();
    spec->set_name("0.weight");
    spec->add_shape(10);
    request.set_total_steps(100);
    request.set_steps_per_epoch(10);
    if (!source.empty()) {
      request.mutable_preprocessing()->set_source(source);
    }
    request.set_no_preprocessing(reason);
    return state_->DeclareModel(request, now_);
  }
};

TEST_F(JobStateInputsTest, ThePreprocessingMayComeAfterTheModel) {
  TRIBUTARY_EXPECT_OK(DeclareWith(1, ""));
  EXPECT_FALSE(state_->plans().knows_inputs());
  TRIBUTARY_EXPECT_OK(DeclareWith(0, "csv"));
  ASSERT_TRUE(state_->plans().knows_inputs());
  EXPECT_EQ(state_->plans().declaration().preprocessing().source(), "csv");
}

TEST_F(JobStateInputsTest, TheFirstPreprocessingStays) {
  TRIBUTARY_EXPECT_OK(DeclareWith(0, "csv"));
  TRIBUTARY_EXPECT_OK(DeclareWith(0, "idx"));
  EXPECT_EQ(state_->plans().declaration().preprocessing().source(), "csv");
}

TEST_F(JobStateInputsTest, AReasonTakesThePlaceOfThePreprocessing) {
  TRIBUTARY_EXPECT_OK(DeclareWith(1, ""));
  TRIBUTARY_EXPECT_OK(DeclareWith(0, "", "it is too large"));
  EXPECT_TRUE(state_->plans().knows_inputs());
  EXPECT_EQ(state_->plans().declaration().no_preprocessing(),
            "it is too large");
}

TEST_F(JobStateInputsTest, ALargerPreprocessingIsRefused) {
  EXPECT_THAT(DeclareWith(0, std::string(kMaxPreprocessingBytes, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted a preprocessing of at most 4194304 bytes"));
  EXPECT_FALSE(state_->plans().knows_inputs());
}

// The model would take one class for another. Rank 0 may declare last.
TEST_F(JobStateInputsTest, OtherClassesThanTheCheckpointsAreRefused) {
  v1::Preprocessing before;
  before.add_class_names("cat");
  v1::CheckpointManifest manifest;
  manifest.set_step(20);
  *manifest.mutable_inputs() = MeaningOf(before);
  restored_ = std::make_shared<v1::CheckpointManifest>(manifest);
  workers_.clear();
  SetUp();
  TRIBUTARY_EXPECT_OK(DeclareWith(1, ""));
  EXPECT_THAT(DeclareWith(0, "csv"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "the classes of the training data are not those of the "
                       "checkpoint"));
  manifest.clear_inputs();  // an earlier version wrote it
  restored_ = std::make_shared<v1::CheckpointManifest>(manifest);
  workers_.clear();
  SetUp();
  TRIBUTARY_EXPECT_OK(DeclareWith(0, "csv"));
}

TEST_F(JobStateInputsTest, ALaterCoordinatorKnowsThem) {
  TRIBUTARY_EXPECT_OK(DeclareWith(0, "csv"));
  const v1::CoordinatorState saved = state_->Save();
  const JobState successor(state_->options(), saved, now_);
  ASSERT_TRUE(successor.plans().knows_inputs());
  EXPECT_EQ(successor.plans().declaration().preprocessing().source(), "csv");
}

}  // namespace
}  // namespace tributary
