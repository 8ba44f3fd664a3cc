// SPDX-License-Identifier: Apache-2.0
// What a job does with requests for a checkpoint while it trains.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "coordinator/service/job_core.h"

namespace tributary {

absl::Status JobCore::AskCheckpoint(int64_t after) {
  if (after < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("after is ", after, ", wanted 1 or more"));
  }
  if (state_.restore_step() >= after) return absl::OkStatus();
  if (state_.over()) return Over();
  if (state_.plan() == nullptr) {
    return absl::FailedPreconditionError(
        "the job has not begun a step, so it has nothing to save");
  }
  if (state_.plan()->checkpoint_directory().empty()) {
    return absl::FailedPreconditionError(
        "the job writes no checkpoints; give it checkpoint.at_end or "
        "checkpoint.every_steps");
  }
  if (state_.stop().requested()) return LeavesCheckpoint();
  asked_after_ = std::max(asked_after_, after);
  HoldForCheckpoint();
  return absl::OkStatus();
}

// After a rollback the job goes through the same steps again first.
void JobCore::HoldForCheckpoint() {
  if (state_.restore_step() >= asked_after_) asked_after_ = 0;
  if (asked_after_ == 0 || state_.asked().step() >= asked_after_ ||
      state_.membership().HighestBegun() < asked_after_) {
    return;
  }
  state_.AskCheckpoint();
}

absl::StatusOr<v1::TakeCheckpointResponse> JobCore::AnswerCheckpoint(
    int64_t after) const {
  v1::TakeCheckpointResponse response;
  response.set_after(after);
  if (state_.restore_step() >= after) {
    response.set_step(state_.restore_step());
    response.set_folder(state_.restore_from());
    return response;
  }
  const CheckpointLedger& ledger = checkpoints_.ledger();
  if (ledger.error_step() >= after && !ledger.error().empty()) {
    return absl::AbortedError(absl::StrCat("the checkpoint of step ",
                                           ledger.error_step(),
                                           " failed: ", ledger.error()));
  }
  if (state_.over()) return Over();
  const AskedCheckpoint& asked = state_.asked();
  if (asked.unsettled()) {
    return absl::DeadlineExceededError(
        "waits until every worker has reported its last step");
  }
  if (asked.step() < after) {
    return absl::DeadlineExceededError(
        absl::StrCat("waits for a checkpoint of step ", after, " or later"));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      asked.hold() > 0 ? "waits until every worker has finished step "
                       : "waits until the files are written of step ",
      asked.step()));
}

absl::Status JobCore::Over() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the job \"", state_.options().job.name(), "\" is over",
                   state_.message().empty() ? "" : ": ", state_.message()));
}

bool JobCore::StandsForCheckpoint() const {
  const AskedCheckpoint& asked = state_.asked();
  if (asked.step() == 0) return false;
  return asked.hold() == 0 ||
         state_.membership().WorkersStandAt(asked.step()) ||
         TRIBUTARY_MUTATED("cut-before-all-stand");
}

void JobCore::FollowAskedCheckpoint() {
  HoldForCheckpoint();
  const AskedCheckpoint& asked = state_.asked();
  if (asked.hold() == 0 || !StandsForCheckpoint()) return;
  if (state_.membership().ServersHaveCut(asked.step())) {
    state_.ReleaseWorkers();
  }
}

}  // namespace tributary
