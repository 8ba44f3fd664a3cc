// How JobControl ends a job: all workers have finished and the weights arrive.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/failpoint.h"
#include "common/job/job_options.h"
#include "coordinator/service/checkpoint_holders.h"
#include "coordinator/service/job_control.h"

namespace tributary {

bool JobControl::InForceLocked() const {
  return !state_.over() && state_.plan() != nullptr && !state_.wants_new_plan();
}

bool JobControl::InForce(uint64_t plan_epoch) const {
  absl::MutexLock lock(&mu_);
  return InForceLocked() && state_.plan()->epoch() == plan_epoch;
}

bool JobControl::ReadyToSaveLocked() const {
  return InForceLocked() && state_.AllWorkersFinished() &&
         progress_.merged_step() >= state_.final_step();
}

void JobControl::GiveUpReportsLocked() {
  for (auto rank = unheard_.begin(); rank != unheard_.end();) {
    const Place& worker = state_.membership().workers()[*rank];
    if (worker.alive || !worker.finished) {
      ++rank;
      continue;
    }
    // An error means that the gap is larger than a finished rank can have left.
    (void)progress_.StartAt(*rank, state_.final_step());
    rank = unheard_.erase(rank);
  }
}

bool JobControl::ReadyToSave(v1::Plan* plan, int64_t* step) const {
  absl::MutexLock lock(&mu_);
  if (!ReadyToSaveLocked() || !HeldLocked().ok()) return false;
  *plan = *state_.plan();
  *step = state_.final_step();
  return true;
}

void JobControl::Saved(uint64_t plan_epoch, const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (status.ok()) {
    state_.MarkDone();
  } else if (InForceLocked() && state_.plan()->epoch() == plan_epoch) {
    state_.Fail(absl::StrCat("the final weights could not be saved: ",
                             status.message()));
  }
  PublishLocked();
  TRIBUTARY_FAILPOINT("coordinator-done");
}

absl::StatusOr<FinalWeights> JobControl::TakePutWeights(int64_t step) const {
  absl::MutexLock lock(&mu_);
  if (put_weights_.complete() && put_weights_.weights().step == step) {
    return put_weights_.weights();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("waiting for the weights after step ", step, " from worker ",
                   absl::StrJoin(WeightsWantedLocked(), ", ")));
}

std::vector<uint32_t> JobControl::WeightsWantedLocked() const {
  std::vector<uint32_t> ranks;
  if (!ReadyToSaveLocked() || UsesServers(state_.options().job)) return ranks;
  const v1::Plan& plan = *state_.plan();
  for (size_t p : put_weights_.Missing()) {
    ranks.push_back(FirstHolderOf(plan, p));
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void JobControl::WantWeightsLocked() {
  const std::vector<uint32_t> ranks = WeightsWantedLocked();
  if (ranks.empty()) return;
  if (wanted_epoch_ != state_.plan()->epoch()) {
    wanted_epoch_ = state_.plan()->epoch();
    NoteLocked(absl::StrCat("the weights after step ", state_.final_step(),
                            " are wanted again from worker ",
                            absl::StrJoin(ranks, ", ")));
  }
  for (uint32_t rank : ranks) state_.WantAgain(rank, clock_->NowMicros());
}

}  // namespace tributary
