// SPDX-License-Identifier: Apache-2.0
// Pipelines in which a stage is cancelled, fails or does not come.
#include <gmock/gmock.h>

#include <barrier>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/train/pipeline/golden_trainings.h"

namespace tributary::testing {
namespace {

using ::testing::HasSubstr;

// The result of each stage's Run; `before` may spoil one.
std::vector<absl::Status> RunSpoilt(
    const Training& training, const PipelineSetting& setting,
    const std::function<void(int s, PipelineStage& stage, Batch* batch)>&
        before) {
  std::vector<absl::Status> statuses(setting.stages);
  RunStages(setting.stages, [&](std::unique_ptr<Mesh> side) {
    const int s = side->rank();
    const StageParts parts = MakeStage(std::move(side), training, setting);
    Batch batch = MakeBatch(training, 0);
    before(s, *parts.stage, &batch);
    const auto cut = CutBatch(batch, setting.micro_batches);
    statuses[s] = parts.stage->Run({.micro_batches = cut}).status();
    EXPECT_EQ(parts.stage->waiting_for(), -1);
  });
  return statuses;
}

TEST(PipelineStageTest, AStageThatIsCancelledIsNamedByAllOthers) {
  const Training training = WithSgd(Cnn().training, 1);
  for (PipelineSchedule schedule : kSchedules) {
    for (int cancelled = 0; cancelled < 4; ++cancelled) {
      const auto statuses = RunSpoilt(training, {4, 6, schedule},
                                      [&](int s, PipelineStage& stage, Batch*) {
                                        if (s == cancelled)
                                          stage.Cancel("the job ends");
                                      });
      for (int s = 0; s < 4; ++s) {
        if (s == cancelled) {
          EXPECT_THAT(statuses[s],
                      StatusIs(absl::StatusCode::kCancelled, "the job ends"));
        } else {
          EXPECT_THAT(statuses[s],
                      StatusIs(absl::StatusCode::kUnavailable,
                               absl::StrCat("rank ", cancelled, " is ")))
              << s;
        }
      }
    }
  }
}

// The last stage meets an invalid label in its third micro-batch.
TEST(PipelineStageTest, AStageThatFailsInMidStepIsNamedByAllOthers) {
  const Training training = WithSgd(Cnn().training, 1);
  for (PipelineSchedule schedule : kSchedules) {
    const auto statuses = RunSpoilt(
        training, {4, 6, schedule},
        [](int, PipelineStage&, Batch* batch) { batch->labels[6] = 10; });
    EXPECT_THAT(statuses[3],
                StatusIs(absl::StatusCode::kInvalidArgument, "got 10"));
    EXPECT_THAT(statuses[2].message(),
                HasSubstr("stage 2 of 4 waited for rank 3 to send the "
                          "gradients of micro-batch 2: rank 3 is gone"));
    EXPECT_THAT(statuses[1].message(), HasSubstr("rank 3 is "));
    EXPECT_THAT(statuses[0].message(), HasSubstr("rank 3 is "));
  }
}

TEST(PipelineStageTest, AStageThatDoesNotComeIsNamedWithWhatItOwes) {
  const Training training = WithSgd(Cnn().training, 1);
  std::vector<absl::Status> statuses(3);
  std::barrier everybody(3);
  RunStages(3, [&](std::unique_ptr<Mesh> side) {
    const int s = side->rank();
    const StageParts parts =
        MakeStage(std::move(side), training, {3, 2}, absl::Milliseconds(500));
    const Batch batch = MakeBatch(training, 0);
    const auto cut = CutBatch(batch, 2);
    if (s < 2) statuses[s] = parts.stage->Run({.micro_batches = cut}).status();
    everybody.arrive_and_wait();
  });
  EXPECT_THAT(statuses[1],
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "stage 1 of 3 waited for rank 2 to send the gradients "
                       "of micro-batch 0: rank 2 did not come for 500ms"));
  EXPECT_THAT(statuses[0], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                    "rank 2 is lost, says rank 1"));
}

}  // namespace
}  // namespace tributary::testing
