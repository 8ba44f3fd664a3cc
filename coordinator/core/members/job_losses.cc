// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/members/job_losses.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutation.h"
#include "common/status/cause.h"

namespace tributary {

JobLosses::JobLosses(JobParts* job, CommonSteps* steps)
    : job_(*job), steps_(*steps), breaks_(job->options.loss_timeout_micros) {}

void JobLosses::Save(v1::CoordinatorState* state) const {
  state->set_workers_lost(workers_lost_);
  state->set_servers_lost(servers_lost_);
}

void JobLosses::Restore(const v1::CoordinatorState& state, int64_t now_micros) {
  workers_lost_ = state.workers_lost();
  servers_lost_ = state.servers_lost();
  if (job_.plan.get() == nullptr) return;
  for (const Place& place : job_.membership.places()) {
    if (place.alive || place.finished) continue;
    places_.Add(place, job_.membership.LastStepOf(place), now_micros);
  }
}

void JobLosses::Lose(const Place& place, absl::string_view how,
                     int64_t now_micros) {
  // Before a plan names its members, another process may simply take the place.
  if (job_.plan.get() == nullptr || job_.life.over()) return;
  const bool is_server = place.role == v1::ROLE_SERVER;
  ++(is_server ? servers_lost_ : workers_lost_);
  const int64_t step = job_.membership.LastStepOf(place);
  // Counts all workers: other ranks of the same process are lost too, and their
  // begun steps are forgotten once they register again.
  steps_.KnowBegun(std::max(step, job_.membership.HighestBegun()));
  const std::string what = absl::StrCat(
      place.Name(), " was lost, last heard at step ", step, ": ", how);
  if (!is_server &&
      job_.options.job.cluster().on_worker_loss() == v1::WORKER_LOSS_FAIL) {
    return job_.life.Fail(what);
  }
  job_.notices.push_back(what);
  places_.Add(place, step, now_micros);
  if (is_server) {
    job_.plan.End();
  } else {
    job_.membership.SetFinished(place.index, false);
  }
  if (job_.strategy.worker_loss_rolls_back()) RollBackWorkers(now_micros);
  AdoptLost();
}

void JobLosses::Return(const Place& place) {
  if (!places_.Remove(place)) return;
  job_.notices.push_back(absl::StrCat(place.Name(), " takes its place"));
}

// Ranks that work in groups cannot continue without a lost one, whose weights
// or residual are gone. So all ranks start over, also those that had finished
// and exited. Ranks that are threads of one process are lost together.
void JobLosses::RollBackWorkers(int64_t now_micros) {
  if (!TRIBUTARY_MUTATED("lost-residual-ignored")) job_.plan.End();
  for (const Place& worker : job_.membership.workers()) {
    job_.membership.SetFinished(worker.index, false);
    if (job_.strategy.one_process() && worker.alive) {
      job_.membership.Expel(v1::ROLE_WORKER, worker.index, worker.holder.pid());
      places_.Add(worker, job_.membership.LastStepOf(worker), now_micros);
    }
    if (IsNoted(worker)) continue;
    places_.Add(worker, job_.membership.LastStepOf(worker), now_micros);
    job_.notices.push_back(
        absl::StrCat(worker.Name(), " had finished and is wanted again"));
  }
}

void JobLosses::BreakGroup(const Place& reporter, absl::string_view why) {
  if (!job_.strategy.has_groups() || job_.plan.wants_new() || job_.life.over())
    return;
  const int64_t now_micros = reporter.last_heartbeat_micros;
  const std::string what = absl::StrCat(
      reporter.Name(), " cannot go on with the other ranks: ", why);
  if (!breaks_.Add(job_.plan.HasAdvanced(job_.membership), now_micros)) {
    return job_.life.Fail(absl::StrCat(breaks_.TooMany(now_micros), what));
  }
  job_.notices.push_back(what);
  RollBackWorkers(now_micros);
}

bool JobLosses::MayFormGroups() const {
  return !breaks_.open() || job_.membership.AllHeardSince(breaks_.RetryMicros(
                                int64_t{job_.options.heartbeat_ms} * 1000));
}

void JobLosses::FormGroups() {
  // A plan that a loss has ended may have advanced since the groups broke.
  if (!breaks_.open() && job_.plan.get() != nullptr &&
      job_.plan.HasAdvanced(job_.membership)) {
    breaks_.Forget();
  }
  breaks_.Close();
}

void JobLosses::WantAgain(uint32_t rank, int64_t now_micros) {
  const Place& worker = job_.membership.workers()[rank];
  if (worker.alive || !worker.finished || job_.life.over()) return;
  Lose(worker, "it had finished, and its weights are wanted again", now_micros);
}

void JobLosses::WantAllAgain(int64_t now_micros) {
  for (const Place& worker : job_.membership.workers()) {
    if (IsNoted(worker)) continue;
    Lose(worker, "it had finished and is wanted again", now_micros);
  }
}

LossVerdict JobLosses::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                  absl::string_view how, int64_t now_micros) {
  if (job_.life.over()) return LossVerdict::kFatal;
  const v1::WorkerLoss on_loss = job_.options.job.cluster().on_worker_loss();
  const bool is_worker = role == v1::ROLE_WORKER;
  const bool fails = is_worker && on_loss == v1::WORKER_LOSS_FAIL;
  if (job_.plan.get() == nullptr) {
    // No state is lost yet: another process registers in its place.
    if (fails) return LossVerdict::kFatal;
    job_.membership.ExpelProcess(role, index, pid);
    return LossVerdict::kReplace;
  }
  const bool shrinks = is_worker && on_loss == v1::WORKER_LOSS_SHRINK;
  if (shrinks && job_.membership.IsAdopted(index, pid)) {
    return job_.membership.AnyWorkerAlive() ? LossVerdict::kGoesOn
                                            : LossVerdict::kReplace;
  }
  const bool listed = places_.Contains(role, index);
  // All ranks of a process are lost before any is taken over again.
  std::vector<const Place*> lost;
  if (shrinks) {
    lost = job_.membership.ExpelProcess(role, index, pid);
  } else if (const Place* place = job_.membership.Expel(role, index, pid)) {
    lost.push_back(place);
  }
  if (lost.empty() && !listed) {
    // Another process may have taken over the rank before this one was killed.
    return shrinks && index < job_.membership.workers().size() &&
                   job_.membership.workers()[index].alive
               ? LossVerdict::kGoesOn
               : LossVerdict::kFatal;
  }
  for (const Place* one : lost) {
    if (!listed || one->index != index) Lose(*one, how, now_micros);
  }
  if (job_.life.over()) return LossVerdict::kFatal;
  return shrinks && job_.membership.AnyWorkerAlive() ? LossVerdict::kGoesOn
                                                     : LossVerdict::kReplace;
}

void JobLosses::Tick(int64_t now_micros) {
  const std::string empty =
      places_.EmptyFor(job_.options.loss_timeout_micros, now_micros);
  if (!empty.empty()) job_.life.Fail(empty);
  AdoptLost();
}

v1::Wait JobLosses::WaitsFor(int64_t now_micros) const {
  v1::Wait wait = WaitFor(places_.WaitsFor(now_micros));
  if (!wait.text().empty()) {
    wait.set_cause(v1::CAUSE_PLACE);
  } else if (breaks_.open()) {
    wait.set_text(breaks_.WaitsFor(now_micros));
  }
  return wait;
}

std::optional<int64_t> JobLosses::SinceMicros() const {
  const std::optional<int64_t> lost = places_.SinceMicros();
  return lost ? lost : breaks_.since_micros();
}

void JobLosses::AdoptLost() {
  const v1::WorkerLoss on_loss = job_.options.job.cluster().on_worker_loss();
  if (on_loss == v1::WORKER_LOSS_SHRINK)
    places_.Adopt(job_.membership, &job_.notices);
}

}  // namespace tributary
