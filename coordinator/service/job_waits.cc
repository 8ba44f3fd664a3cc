// SPDX-License-Identifier: Apache-2.0
// What a job waits for: members, final weights, room on a disk.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/job_options.h"
#include "common/status/cause.h"
#include "coordinator/service/checkpoint_holders.h"
#include "coordinator/service/job_core.h"

namespace tributary {

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

void JobCore::SetWaits(const v1::Wait& what) {
  if (!waits_ && !what.text().empty()) {
    Note(what.text());
    waits_.since_micros = now();
  }
  waits_.wait = what;
}

JobWait JobCore::Waiting() const {
  if (const absl::Status held = Held(); !held.ok()) {
    v1::Wait wait = WaitFor(std::string(held.message()));
    wait.set_cause(CauseOf(held));
    return {std::move(wait), saver_.held_micros()};
  }
  if (state_.over()) return {};
  const int64_t since =
      state_.WaitsSinceMicros().value_or(reports_.progress_micros());
  if (state_.phase() == v1::JOB_PHASE_WAITING) {
    v1::Wait wait = WaitFor(absl::StrCat("waiting for ", state_.Missing()));
    wait.set_cause(v1::CAUSE_PLACE);
    return {std::move(wait), since};
  }
  if (const std::vector<uint32_t> ranks = WeightsWanted(); !ranks.empty()) {
    const absl::Status wanted = TakePutWeights(state_.final_step()).status();
    return {
        WaitForRanks(std::string(wanted.message()), ranks, state_.final_step()),
        since};
  }
  if (v1::Wait members = state_.WaitsFor(now()); !members.text().empty()) {
    return {std::move(members), since};
  }
  if (JobWait hold = HoldWait(); hold) return hold;
  return waits_;
}

std::string JobCore::Message() const {
  const JobWait waiting = Waiting();
  return !waiting && state_.over() ? state_.message() : waiting.wait.text();
}

}  // namespace tributary
