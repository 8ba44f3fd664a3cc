// SPDX-License-Identifier: Apache-2.0
// The reaction of a job when a member is lost or a group of ranks breaks.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "coordinator/core/job_state.h"

namespace tributary {

void JobState::Lose(const Place& place, absl::string_view how,
                    int64_t now_micros) {
  // Before a plan names its members, another process may simply take the place.
  if (plan() == nullptr || life_.over()) return;
  const bool is_server = place.role == v1::ROLE_SERVER;
  ++(is_server ? servers_lost_ : workers_lost_);
  const int64_t step = membership_.LastStepOf(place);
  // Counts all workers: other ranks of the same process are lost too, and their
  // begun steps are forgotten once they register again.
  stop_.KnowBegun(std::max(step, membership_.HighestBegun()));
  const std::string what = absl::StrCat(
      place.Name(), " was lost, last heard at step ", step, ": ", how);
  if (!is_server &&
      options_.job.cluster().on_worker_loss() == v1::WORKER_LOSS_FAIL) {
    return life_.Fail(what);
  }
  notices_.push_back(what);
  losses_.Add(place, step, now_micros);
  if (is_server) {
    plan_.End();
  } else {
    membership_.SetFinished(place.index, false);
  }
  if (strategy_.worker_loss_rolls_back()) RollBackWorkers(now_micros);
  AdoptLost();
}

// Ranks that work in groups cannot continue without a lost one, whose weights
// or residual are gone. So all ranks start over, also those that had finished
// and exited. Ranks that are threads of one process are lost together.
void JobState::RollBackWorkers(int64_t now_micros) {
  if (!TRIBUTARY_MUTATED("lost-residual-ignored")) plan_.End();
  for (const Place& worker : membership_.workers()) {
    membership_.SetFinished(worker.index, false);
    if (strategy_.one_process() && worker.alive) {
      membership_.Expel(v1::ROLE_WORKER, worker.index, worker.holder.pid());
      losses_.Add(worker, membership_.LastStepOf(worker), now_micros);
    }
    if (IsNoted(worker)) continue;
    losses_.Add(worker, membership_.LastStepOf(worker), now_micros);
    notices_.push_back(
        absl::StrCat(worker.Name(), " had finished and is wanted again"));
  }
}

void JobState::BreakGroup(const Place& reporter, absl::string_view why) {
  if (!strategy_.has_groups() || wants_new_plan() || life_.over()) return;
  const int64_t now_micros = reporter.last_heartbeat_micros;
  const std::string what = absl::StrCat(
      reporter.Name(), " cannot go on with the other ranks: ", why);
  if (!breaks_.Add(plan_.HasAdvanced(membership_), now_micros)) {
    return life_.Fail(absl::StrCat(breaks_.TooMany(now_micros), what));
  }
  notices_.push_back(what);
  RollBackWorkers(now_micros);
}

void JobState::WantAgain(uint32_t rank, int64_t now_micros) {
  const Place& worker = membership_.workers()[rank];
  if (worker.alive || !worker.finished || life_.over()) return;
  Lose(worker, "it had finished, and its weights are wanted again", now_micros);
}

LossVerdict JobState::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                 absl::string_view how, int64_t now_micros) {
  if (life_.over()) return LossVerdict::kFatal;
  const v1::WorkerLoss on_loss = options_.job.cluster().on_worker_loss();
  const bool is_worker = role == v1::ROLE_WORKER;
  const bool fails = is_worker && on_loss == v1::WORKER_LOSS_FAIL;
  if (plan() == nullptr) {
    // No state is lost yet: another process registers in its place.
    if (fails) return LossVerdict::kFatal;
    membership_.ExpelProcess(role, index, pid);
    return LossVerdict::kReplace;
  }
  const bool shrinks = is_worker && on_loss == v1::WORKER_LOSS_SHRINK;
  if (shrinks && membership_.IsAdopted(index, pid)) {
    return membership_.AnyWorkerAlive() ? LossVerdict::kGoesOn
                                        : LossVerdict::kReplace;
  }
  const bool listed = losses_.Contains(role, index);
  // All ranks of a process are lost before any is taken over again.
  std::vector<const Place*> lost;
  if (shrinks) {
    lost = membership_.ExpelProcess(role, index, pid);
  } else if (const Place* place = membership_.Expel(role, index, pid)) {
    lost.push_back(place);
  }
  if (lost.empty() && !listed) {
    // Another process may have taken over the rank before this one was killed.
    return shrinks && index < membership_.workers().size() &&
                   membership_.workers()[index].alive
               ? LossVerdict::kGoesOn
               : LossVerdict::kFatal;
  }
  for (const Place* one : lost) {
    if (!listed || one->index != index) Lose(*one, how, now_micros);
  }
  if (life_.over()) return LossVerdict::kFatal;
  return shrinks && membership_.AnyWorkerAlive() ? LossVerdict::kGoesOn
                                                 : LossVerdict::kReplace;
}

void JobState::AdoptLost() {
  const v1::WorkerLoss on_loss = options_.job.cluster().on_worker_loss();
  if (on_loss == v1::WORKER_LOSS_SHRINK) losses_.Adopt(membership_, &notices_);
}

}  // namespace tributary
