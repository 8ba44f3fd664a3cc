// How JobState handles the loss of members.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/job/job_options.h"
#include "coordinator/core/job_state.h"
#include "coordinator/core/name_list.h"

namespace tributary {
namespace {

double Seconds(int64_t micros) { return static_cast<double>(micros) / 1e6; }

}  // namespace

void JobState::Tick(int64_t now_micros) {
  if (over()) return;
  const int64_t pause_micros = now_micros - last_tick_micros_;
  last_tick_micros_ = now_micros;
  if (pause_micros > int64_t{options_.lease_ms} * 1000 / 2) {
    membership_.RenewAll(now_micros);
  }
  for (Place* lost : membership_.Expire(now_micros)) {
    Lose(*lost,
         absl::StrFormat("no heartbeat for %.1f s",
                         Seconds(now_micros - lost->last_heartbeat_micros)),
         now_micros);
  }
  for (const auto& [key, loss] : losses_) {
    if (now_micros - loss.since_micros < options_.loss_timeout_micros) continue;
    Fail(absl::StrFormat(
        "%s was lost at step %d, and nobody has taken its place for %.1f s",
        loss.name, loss.step, Seconds(now_micros - loss.since_micros)));
  }
  AdoptLost();
  if (broken_micros_) PublishPlanWhenComplete();
  if (!plan_ && now_micros - start_micros_ >= options_.start_timeout_micros) {
    Fail(absl::StrFormat("waited %.1f s in vain for %s",
                         Seconds(now_micros - start_micros_), Missing()));
  }
}

void JobState::Lose(Place& place, absl::string_view how, int64_t now_micros) {
  // Before a plan names its members, another process may simply take the place.
  if (!plan_ || over()) return;
  const bool is_server = place.role == v1::ROLE_SERVER;
  ++(is_server ? servers_lost_ : workers_lost_);
  const int64_t step = LastStepOf(place);
  // Counts all workers: other ranks of the same process are lost too, and their
  // begun steps are forgotten once they register again.
  furthest_step_ = std::max({furthest_step_, step, HighestBegun()});
  const std::string what =
      absl::StrCat(place.Name(), " was lost at step ", step, ": ", how);
  if (!is_server &&
      options_.job.cluster().on_worker_loss() == v1::WORKER_LOSS_FAIL) {
    return Fail(what);
  }
  notices_.push_back(what);
  losses_[{place.role, place.index}] = {now_micros, step, place.Name()};
  place.finished = false;
  if (is_server) wants_new_plan_ = true;
  if (HasGroups(options_.job)) WantNewGroup(now_micros);
  AdoptLost();
}

// Ranks that work in groups cannot continue when one of them is lost, and
// without servers the ranks hold the weights. So all ranks start over together,
// including those that had finished and exited. If the ranks are threads of one
// process, all of them are lost with it.
void JobState::WantNewGroup(int64_t now_micros) {
  wants_new_plan_ = true;
  const bool one_process = options_.job.strategy().has_data_parallel();
  for (Place& worker : membership_.workers()) {
    worker.finished = false;
    if (one_process && worker.alive) {
      membership_.Expel(v1::ROLE_WORKER, worker.index, worker.holder.pid());
      losses_[{v1::ROLE_WORKER, worker.index}] = {
          now_micros, LastStepOf(worker), worker.Name()};
    }
    if (worker.alive || losses_.count({v1::ROLE_WORKER, worker.index}) > 0) {
      continue;
    }
    losses_[{v1::ROLE_WORKER, worker.index}] = {now_micros, LastStepOf(worker),
                                                worker.Name()};
    notices_.push_back(
        absl::StrCat(worker.Name(), " had finished and is wanted again"));
  }
}

void JobState::BreakGroup(const Place& reporter, absl::string_view why) {
  if (!HasGroups(options_.job) || wants_new_plan_ || over()) return;
  const int64_t now_micros = reporter.last_heartbeat_micros;
  const int64_t step = std::max(furthest_step_, HighestBegun());
  const std::string what = absl::StrCat(
      reporter.Name(), " cannot go on with the other ranks: ", why);
  if (!regroups_.Add(step, now_micros)) {
    return Fail(absl::StrFormat(
        "the ranks' groups broke %d times in %.1f s, and no rank came further "
        "than step %d; the last time %s",
        regroups_.count(), Seconds(now_micros - regroups_.since_micros()), step,
        what));
  }
  notices_.push_back(what);
  broken_micros_ = now_micros;
  WantNewGroup(now_micros);
}

// A lost rank breaks its group before its own lease expires. A plan that named
// it again would only break again.
bool JobState::EverybodyHeardSinceBreak() const {
  const int64_t since =
      *broken_micros_ +
      std::max(regroups_.PauseMicros(), int64_t{options_.heartbeat_ms} * 1000);
  const auto heard = [since](const Place& place) {
    return place.last_heartbeat_micros >= since;
  };
  return std::all_of(membership_.servers().begin(), membership_.servers().end(),
                     heard) &&
         std::all_of(membership_.workers().begin(), membership_.workers().end(),
                     heard);
}

void JobState::WantAgain(uint32_t rank, int64_t now_micros) {
  Place& worker = membership_.workers()[rank];
  if (worker.alive || !worker.finished || over()) return;
  Lose(worker, "it had finished, and its weights are wanted again", now_micros);
}

LossVerdict JobState::MemberLost(v1::Role role, uint32_t index, int64_t pid,
                                 absl::string_view how, int64_t now_micros) {
  if (over()) return LossVerdict::kFatal;
  const v1::WorkerLoss on_loss = options_.job.cluster().on_worker_loss();
  const bool is_worker = role == v1::ROLE_WORKER;
  if (!plan_) {
    // No state is lost yet: another process registers in its place.
    if (is_worker && on_loss == v1::WORKER_LOSS_FAIL)
      return LossVerdict::kFatal;
    membership_.ExpelProcess(role, index, pid);
    return LossVerdict::kReplace;
  }
  const bool shrinks = is_worker && on_loss == v1::WORKER_LOSS_SHRINK;
  if (shrinks && IsAdopted(index, pid)) {
    return AnyWorkerAlive() ? LossVerdict::kGoesOn : LossVerdict::kReplace;
  }
  const bool listed = losses_.count({role, index}) > 0;
  Place* place = membership_.Expel(role, index, pid);
  if (place == nullptr && !listed) {
    // Another process may have taken over the rank before this one was killed.
    const bool held = shrinks && index < membership_.workers().size() &&
                      membership_.workers()[index].alive;
    return held ? LossVerdict::kGoesOn : LossVerdict::kFatal;
  }
  // The process also held the ranks that it had taken over. All of them are
  // expelled before any is taken over again.
  std::vector<Place*> lost;
  if (!listed) lost.push_back(place);
  for (Place& other : membership_.workers()) {
    const bool same = shrinks && place != nullptr && other.alive &&
                      other.holder.host() == place->holder.host();
    if (same && membership_.Expel(role, other.index, pid) != nullptr) {
      lost.push_back(&other);
    }
  }
  for (Place* one : lost) Lose(*one, how, now_micros);
  if (over()) return LossVerdict::kFatal;
  return shrinks && AnyWorkerAlive() ? LossVerdict::kGoesOn
                                     : LossVerdict::kReplace;
}

bool JobState::AnyWorkerAlive() const {
  return std::any_of(membership_.workers().begin(), membership_.workers().end(),
                     [](const Place& worker) { return worker.alive; });
}

// A process registers its own rank before the ranks that it takes over. On
// another host the coordinator sees only the end of the launcher. By then the
// rank that it started may be held by another launcher's process, and that
// process is alive.
bool JobState::IsAdopted(uint32_t rank, int64_t pid) const {
  const std::vector<Place>& workers = membership_.workers();
  if (rank >= workers.size() || workers[rank].holder.pid() != pid) return false;
  const Place& place = workers[rank];
  return std::any_of(
      workers.begin(), workers.end(), [&place](const Place& other) {
        return other.alive && other.incarnation < place.incarnation &&
               other.holder.pid() == place.holder.pid() &&
               other.holder.host() == place.holder.host();
      });
}

// Assigns every lost rank to the living worker process with the fewest ranks,
// the lowest rank first; assigns it again when that worker is lost, too.
void JobState::AdoptLost() {
  if (options_.job.cluster().on_worker_loss() != v1::WORKER_LOSS_SHRINK) return;
  for (const auto& [key, loss] : losses_) {
    const auto& [role, rank] = key;
    if (role != v1::ROLE_WORKER) continue;
    const auto held = adopters_.find(rank);
    if (held != adopters_.end() && membership_.workers()[held->second].alive) {
      continue;
    }
    // Counts ranks by host and pid: in containers all processes may have the
    // same pid.
    const auto process_of = [](const Place& worker) {
      return std::make_pair(worker.holder.host(), worker.holder.pid());
    };
    std::map<std::pair<std::string, int64_t>, int> ranks_of;
    for (const Place& worker : membership_.workers()) {
      if (worker.alive) ++ranks_of[process_of(worker)];
    }
    const Place* fewest = nullptr;
    for (const Place& worker : membership_.workers()) {
      if (worker.alive &&
          (fewest == nullptr ||
           ranks_of[process_of(worker)] < ranks_of[process_of(*fewest)])) {
        fewest = &worker;
      }
    }
    if (fewest == nullptr) continue;  // none left; loss_timeout ends the job
    adopters_[rank] = fewest->index;
    notices_.push_back(absl::StrCat(fewest->Name(), " takes over rank ", rank));
  }
}

std::vector<uint32_t> JobState::AdoptedBy(uint32_t worker) const {
  std::vector<uint32_t> ranks;
  for (const auto& [rank, adopter] : adopters_) {
    if (adopter == worker) ranks.push_back(rank);
  }
  return ranks;
}

std::string JobState::WaitsFor(int64_t now_micros) const {
  std::vector<std::string> waits;
  for (const auto& [key, loss] : losses_) {
    waits.push_back(absl::StrFormat(
        "waiting for a process in the place of %s, lost at step %d, "
        "%.1f s ago",
        loss.name, loss.step, Seconds(now_micros - loss.since_micros)));
  }
  std::string text = NameList(waits, "; ");
  if (text.empty() && broken_micros_) {
    return absl::StrFormat(
        "waiting until everybody is heard, to form the ranks' groups anew: "
        "they broke %.1f s ago",
        Seconds(now_micros - *broken_micros_));
  }
  if (text.empty() && wants_new_plan_) {
    return may_start_ ? "waiting for a new plan"
                      : "waiting for the coordinator's run directory";
  }
  return text;
}

}  // namespace tributary
