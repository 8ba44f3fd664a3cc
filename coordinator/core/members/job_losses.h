// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/core/job_parts.h"
#include "coordinator/core/members/group_breaks.h"
#include "coordinator/core/members/lost_places.h"
#include "coordinator/core/steps/common_steps.h"

namespace tributary {

// What a job does when it loses a member or a group of ranks breaks. The place
// of a lost worker waits for another process or is taken over by a living
// worker, depending on the job; a worker's contributions are a function of its
// rank. The loss of a server loses state, and so does that of a worker if
// Strategy::worker_loss_rolls_back: then the plan ends. A plain object.
class JobLosses {
 public:
  // Both must outlive this object.
  JobLosses(JobParts* job, CommonSteps* steps);

  void Save(v1::CoordinatorState* state) const;
  // The timeouts of lost members start anew.
  void Restore(const v1::CoordinatorState& state, int64_t now_micros);

  void Lose(const Place& place, absl::string_view how, int64_t now_micros);
  // A process has taken this place.
  void Return(const Place& place);
  // Call it if a process is known to be gone: its lease need not expire first.
  LossVerdict MemberLost(v1::Role role, uint32_t index, int64_t pid,
                         absl::string_view how, int64_t now_micros);
  // The weights of this finished worker are needed again. If its process has
  // exited, the worker counts as lost.
  void WantAgain(uint32_t rank, int64_t now_micros);
  // All members start over, also workers that had finished.
  void WantAllAgain(int64_t now_micros);
  // The groups of the current plan cannot continue, although perhaps no rank is
  // lost. A new plan follows once every member has sent a heartbeat again. The
  // job fails when groups have broken too often.
  void BreakGroup(const Place& reporter, absl::string_view why);
  // Whether the groups are broken and not formed again.
  bool HasBrokenGroups() const { return breaks_.open(); }
  // Whether broken groups may be formed again now. A lost rank breaks its group
  // before its own lease expires: a plan that named it again would only break
  // again.
  bool MayFormGroups() const;
  // A new plan forms the groups.
  void FormGroups();
  // Fails the job when a place has been empty for too long, and gives lost
  // ranks to living workers if the job wants it.
  void Tick(int64_t now_micros);

  // The lost ranks that this worker shall take over now.
  std::vector<uint32_t> AdoptedBy(uint32_t worker) const {
    return places_.AdoptedBy(worker);
  }
  // Names what the job waits for after a loss; empty: nothing.
  v1::Wait WaitsFor(int64_t now_micros) const;
  // When the first empty place was lost, or the groups broke; nullopt: neither.
  std::optional<int64_t> SinceMicros() const;
  uint64_t workers_lost() const { return workers_lost_; }
  uint64_t servers_lost() const { return servers_lost_; }

 private:
  // Whether a place is lost, or empty because its worker had finished.
  bool IsNoted(const Place& place) const {
    return place.alive || places_.Contains(place.role, place.index);
  }
  void RollBackWorkers(int64_t now_micros);
  void AdoptLost();

  JobParts& job_;
  CommonSteps& steps_;
  LostPlaces places_;
  GroupBreaks breaks_;
  uint64_t workers_lost_ = 0;
  uint64_t servers_lost_ = 0;
};

}  // namespace tributary
