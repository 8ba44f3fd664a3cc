// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_ending.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/failpoint.h"
#include "common/job/job_options.h"
#include "common/plan/plan_codec.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"
#include "coordinator/job/checkpoint_holders.h"

namespace tributary {

void JobEnding::BeginPlan() {
  put_weights_.Begin(FromProto(state_.plan()->parameters()));
}

bool JobEnding::Ready() const {
  return state_.plan() != nullptr && state_.InForce(state_.plan()->epoch()) &&
         state_.membership().AllWorkersFinished() &&
         reports_.progress().merged_step() >= state_.steps().final_step();
}

absl::Status JobEnding::Put(const v1::PutWeightsRequest& request) {
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

std::vector<uint32_t> JobEnding::Wanted() const {
  std::vector<uint32_t> ranks;
  if (!Ready() || StrategyOf(state_.options().job).uses_servers()) return ranks;
  for (size_t p : put_weights_.Missing()) {
    ranks.push_back(FirstHolderOf(*state_.plan(), p));
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

absl::StatusOr<FinalWeights> JobEnding::Weights(int64_t step) const {
  if (put_weights_.complete() && put_weights_.weights().step == step) {
    return put_weights_.weights();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("waiting for the weights after step ", step, " from worker ",
                   absl::StrJoin(Wanted(), ", ")));
}

std::string JobEnding::WantAgain(int64_t now_micros) {
  const std::vector<uint32_t> ranks = Wanted();
  if (ranks.empty()) return "";
  for (uint32_t rank : ranks) state_.losses().WantAgain(rank, now_micros);
  if (wanted_epoch_ == state_.plan()->epoch()) return "";
  wanted_epoch_ = state_.plan()->epoch();
  return absl::StrCat("the weights after step ", state_.steps().final_step(),
                      " are wanted again from worker ",
                      absl::StrJoin(ranks, ", "));
}

void JobEnding::Saved(uint64_t plan_epoch, const absl::Status& status) {
  if (status.ok()) {
    state_.life().MarkDone();
  } else if (state_.InForce(plan_epoch)) {
    state_.life().Fail(absl::StrCat("the final weights could not be saved: ",
                                    status.message()),
                       CauseOf(status));
  }
}

}  // namespace tributary
