// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/operator_requests.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "common/status/cause.h"
#include "common/status/printable.h"
#include "common/status/status_macros.h"
#include "coordinator/core/members/name_list.h"

namespace tributary {
namespace {

// A hold that is over sooner is not reported.
constexpr int64_t kShortHoldMicros = 1'000'000;

}  // namespace

absl::Status OperatorRequests::LeavesCheckpoint() const {
  if (state_.plan() == nullptr) {
    return absl::FailedPreconditionError(
        "the job has not begun a step, so it has nothing to save");
  }
  if (state_.options().job.checkpoint().at_end() &&
      !state_.plan()->checkpoint_directory().empty()) {
    return absl::OkStatus();
  }
  const int64_t newest = std::max(checkpoints_.ledger().newest_step(),
                                  state_.plans().restore_step());
  return absl::FailedPreconditionError(absl::StrCat(
      "the job writes no checkpoint when it stops: checkpoint.at_end is false",
      newest > 0 ? absl::StrCat("; its newest checkpoint is of step ", newest)
                 : ""));
}

absl::StatusOr<v1::StopJobResponse> OperatorRequests::Stop(
    const v1::StopJobRequest& request) {
  if (state_.life().over()) return Over();
  const absl::Status leaves = LeavesCheckpoint();
  if (request.checkpoint()) TRIBUTARY_RETURN_IF_ERROR(leaves);
  if (!state_.steps().stop().requested()) {
    notices_.push_back(absl::StrCat(
        "stopping at the next common step, as asked: ",
        request.reason().empty() ? "no reason was given"
                                 : ShortSentence(request.reason())));
  }
  state_.steps().RequestStop();
  v1::StopJobResponse response;
  response.set_message(
      state_.life().over()
          ? state_.life().message()
          : absl::StrCat("the job ends after the next step that every worker "
                         "reaches, and ",
                         leaves.ok() ? "leaves a checkpoint of it"
                                     : "leaves no checkpoint of it"));
  return response;
}

absl::Status OperatorRequests::AskCheckpoint(int64_t after) {
  if (after < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("after is ", after, ", wanted 1 or more"));
  }
  if (state_.plans().restore_step() >= after) return absl::OkStatus();
  if (state_.life().over()) return Over();
  if (state_.plan() == nullptr) {
    return absl::FailedPreconditionError(
        "the job has not begun a step, so it has nothing to save");
  }
  if (state_.plan()->checkpoint_directory().empty()) {
    return absl::FailedPreconditionError(
        "the job writes no checkpoints; give it checkpoint.at_end or "
        "checkpoint.every_steps");
  }
  if (state_.steps().stop().requested()) return LeavesCheckpoint();
  asked_after_ = std::max(asked_after_, after);
  HoldIfDue();
  return absl::OkStatus();
}

// After a rollback the job goes through the same steps again first.
void OperatorRequests::HoldIfDue() {
  if (state_.plans().restore_step() >= asked_after_) asked_after_ = 0;
  if (asked_after_ == 0 || state_.steps().asked().step() >= asked_after_ ||
      state_.steps().asked().ends_with_job() ||
      state_.membership().HighestBegun() < asked_after_) {
    return;
  }
  if (state_.steps().asked().hold() == 0) held_micros_ = clock_->NowMicros();
  state_.steps().AskCheckpoint();
}

absl::StatusOr<v1::TakeCheckpointResponse> OperatorRequests::AnswerCheckpoint(
    int64_t after) const {
  v1::TakeCheckpointResponse response;
  response.set_after(after);
  if (state_.plans().restore_step() >= after) {
    response.set_step(state_.plans().restore_step());
    response.set_folder(state_.plans().restore_from());
    return response;
  }
  const CheckpointLedger& ledger = checkpoints_.ledger();
  if (ledger.error_step() >= after && !ledger.error().empty()) {
    return absl::AbortedError(absl::StrCat("the checkpoint of step ",
                                           ledger.error_step(),
                                           " failed: ", ledger.error()));
  }
  if (state_.life().over()) return Over();
  const AskedCheckpoint& asked = state_.steps().asked();
  if (asked.hold() > 0) return absl::DeadlineExceededError(HeldFor());
  if (asked.ends_with_job()) {
    if (!checkpoints_.WritesAtEnd()) {
      return absl::FailedPreconditionError(
          "the job ends before another checkpoint, and leaves none of its last "
          "step");
    }
    return absl::DeadlineExceededError("waits for the end of the job");
  }
  if (asked.step() < after) {
    return absl::DeadlineExceededError(
        absl::StrCat("waits for a checkpoint of step ", after, " or later"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("waits until the files are written of step ", asked.step()));
}

std::string OperatorRequests::HeldFor() const {
  const AskedCheckpoint& asked = state_.steps().asked();
  const Membership& members = state_.membership();
  std::vector<std::string> names;
  for (const Place& worker : members.workers()) {
    if (worker.finished ||
        (asked.unsettled() ? worker.stop_bound >= 0
                           : worker.stands_at >= asked.step()))
      continue;
    names.push_back(worker.ShortName());
  }
  if (asked.unsettled()) {
    return absl::StrCat("waits for ", NameList(names),
                        " to report the last step");
  }
  if (!names.empty()) {
    return absl::StrCat("waits for ", NameList(names), " to finish step ",
                        asked.step());
  }
  for (const Place& server : members.servers()) {
    if (server.cut_step < asked.step()) names.push_back(server.ShortName());
  }
  return absl::StrCat("waits for ", NameList(names),
                      " to copy the weights after step ", asked.step());
}

JobWait OperatorRequests::Waiting() const {
  if (state_.steps().asked().hold() == 0 ||
      clock_->NowMicros() < held_micros_ + kShortHoldMicros) {
    return {};
  }
  v1::Wait wait =
      WaitFor(absl::StrCat("a checkpoint that was asked for ", HeldFor()));
  wait.set_cause(v1::CAUSE_CHECKPOINT);
  return {std::move(wait), held_micros_};
}

absl::Status OperatorRequests::Over() const {
  return absl::FailedPreconditionError(absl::StrCat(
      "the job \"", state_.options().job.name(), "\" is over",
      state_.life().message().empty() ? "" : ": ", state_.life().message()));
}

bool OperatorRequests::Stands() const {
  const AskedCheckpoint& asked = state_.steps().asked();
  if (asked.step() == 0) return false;
  return asked.hold() == 0 ||
         state_.membership().WorkersStandAt(asked.step()) ||
         TRIBUTARY_MUTATED("cut-before-all-stand");
}

void OperatorRequests::Follow() {
  HoldIfDue();
  const AskedCheckpoint& asked = state_.steps().asked();
  if (asked.hold() == 0 || !Stands()) return;
  if (state_.membership().ServersHaveCut(asked.step())) {
    state_.steps().ReleaseWorkers();
  }
}

}  // namespace tributary
