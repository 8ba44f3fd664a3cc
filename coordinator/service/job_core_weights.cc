// SPDX-License-Identifier: Apache-2.0
// The final weights of a job: taken from its ranks, and asked for again.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/failpoint.h"
#include "common/job/job_options.h"
#include "common/status/status_macros.h"
#include "coordinator/service/checkpoint_holders.h"
#include "coordinator/service/job_core.h"

namespace tributary {

absl::Status JobCore::Put(const v1::PutWeightsRequest& request) {
  TRIBUTARY_RETURN_IF_ERROR(state_.CheckWorker(
      request.rank(), request.incarnation(), request.plan_epoch()));
  if (StrategyOf(state_.options().job).uses_servers()) {
    return absl::FailedPreconditionError(
        "weights are put by the ranks of a job without servers");
  }
  const v1::Plan& plan = *state_.plan();
  if (request.parameter() < static_cast<uint32_t>(plan.parameters_size())) {
    const uint32_t first = FirstHolderOf(plan, request.parameter());
    if (request.rank() != first) {
      return absl::FailedPreconditionError(absl::StrCat(
          "parameter ",
          plan.parameters(static_cast<int>(request.parameter())).name(),
          " is put by rank ", first, ", got rank ", request.rank()));
    }
  }
  const absl::Status status = put_weights_.Put(request);
  TRIBUTARY_FAILPOINT("coordinator-weights-piece");
  return status;
}

bool JobCore::ReadyToSave() const {
  return state_.plan() != nullptr && InForce(state_.plan()->epoch()) &&
         state_.membership().AllWorkersFinished() &&
         reports_.progress().merged_step() >= state_.final_step();
}

void JobCore::Saved(uint64_t plan_epoch, const absl::Status& status) {
  if (status.ok()) {
    state_.MarkDone();
  } else if (InForce(plan_epoch)) {
    state_.Fail(absl::StrCat("the final weights could not be saved: ",
                             status.message()));
  }
}

std::vector<uint32_t> JobCore::WeightsWanted() const {
  std::vector<uint32_t> ranks;
  if (!ReadyToSave() || StrategyOf(state_.options().job).uses_servers())
    return ranks;
  for (size_t p : put_weights_.Missing()) {
    ranks.push_back(FirstHolderOf(*state_.plan(), p));
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

absl::StatusOr<FinalWeights> JobCore::TakePutWeights(int64_t step) const {
  if (put_weights_.complete() && put_weights_.weights().step == step) {
    return put_weights_.weights();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("waiting for the weights after step ", step, " from worker ",
                   absl::StrJoin(WeightsWanted(), ", ")));
}

void JobCore::WantWeights() {
  const std::vector<uint32_t> ranks = WeightsWanted();
  if (ranks.empty()) return;
  if (wanted_epoch_ != state_.plan()->epoch()) {
    wanted_epoch_ = state_.plan()->epoch();
    Note(absl::StrCat("the weights after step ", state_.final_step(),
                      " are wanted again from worker ",
                      absl::StrJoin(ranks, ", ")));
  }
  for (uint32_t rank : ranks) state_.WantAgain(rank, now());
}

}  // namespace tributary
