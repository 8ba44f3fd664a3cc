// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/core/members/place.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The places of a job, their leases and incarnations. A plain object: time is
// passed in, and the caller decides what a lost member means. The returned
// places live as long as this object; only its own functions change them.
class Membership {
 public:
  static constexpr int kMaxWorkers = 1024;

  Membership(int num_servers, int num_workers, int64_t lease_micros);

  // Gives the process a place. A known instance gets its own place back, with
  // the same incarnation while its lease lives. Otherwise it gets the wanted
  // place or the lowest free one. A new holder gets a higher incarnation than
  // all holders before. InvalidArgument: the request's fields. AlreadyExists:
  // no place is free, or another living server has this address.
  absl::StatusOr<const Place*> Register(const v1::RegisterRequest& request,
                                        int64_t now_micros);

  // Renews the lease and returns the place. InvalidArgument: there is no such
  // place. FailedPrecondition: the lease has expired, or another process holds
  // the place.
  absl::StatusOr<const Place*> Renew(v1::Role role, uint32_t index,
                                     uint64_t incarnation, int64_t now_micros);

  // FailedPrecondition unless this living process holds the place, or the rank.
  absl::Status CheckHolder(v1::Role role, uint32_t index,
                           uint64_t incarnation) const;
  absl::Status CheckWorker(uint32_t rank, uint64_t incarnation) const {
    return CheckHolder(v1::ROLE_WORKER, rank, incarnation);
  }

  // Stores what a member reports in a heartbeat. Returns the step that it has
  // begun under the heartbeat's plan; a late copy of an earlier heartbeat does
  // not reduce it. The place keeps this step only if the plan is in force.
  int64_t Report(const v1::HeartbeatRequest& heartbeat, bool in_force);
  // Records that the sender, if it still holds its place, knows the job's end.
  void TellEnd(const v1::HeartbeatRequest& heartbeat);
  void SetFinished(uint32_t worker, bool finished);
  // Marks all workers as not paused.
  void ForgetPauses();
  // Whether every worker waits after this step, or has finished.
  bool WorkersStandAt(int64_t step) const;
  // Whether every server has taken its snapshot of this step.
  bool ServersHaveCut(int64_t step) const;
  // Records that the worker has paused: until it is told to go on, it begins no
  // step after `begun_step`.
  void SetPaused(uint32_t worker, int64_t begun_step);

  // Ends expired leases and returns their places, each once. A worker that had
  // finished is not a loss and is not returned.
  std::vector<const Place*> Expire(int64_t now_micros);

  // Ends the lease of a holder whose process is known to be gone. Null if this
  // process does not hold the place (any more).
  const Place* Expel(v1::Role role, uint32_t index, int64_t pid);
  // Ends the lease of another server that has the address and host of this
  // registering server and has been silent since then. Null if there is none.
  const Place* ExpelSilentServer(const v1::RegisterRequest& request,
                                 int64_t silent_since_micros);
  // Like Expel, for every place that this process holds on the host of place
  // `index`. Returns these places, that of `index` first.
  std::vector<const Place*> ExpelProcess(v1::Role role, uint32_t index,
                                         int64_t pid);

  // All members start over: clears every worker's begun, paused and finished
  // state.
  void StartOver();

  // Renews every living lease. For a coordinator that was suspended (stopped by
  // a signal, or on a machine that slept) and could not receive heartbeats.
  void RenewAll(int64_t now_micros);

  absl::Span<const Place> servers() const {
    return absl::MakeConstSpan(places_).first(num_servers_);
  }
  absl::Span<const Place> workers() const {
    return absl::MakeConstSpan(places_).subspan(num_servers_);
  }
  // Servers, then workers.
  absl::Span<const Place> places() const { return places_; }

  // Saves and restores the holders, for a restarted coordinator; their
  // leases start again.
  void Save(v1::CoordinatorState* state) const;
  // Increases with every change of what Save saves.
  uint64_t revision() const { return revision_; }
  void Restore(const v1::CoordinatorState& state, int64_t now_micros);

  // True when every place (every server's place) has a living holder.
  bool Complete() const;
  bool ServersComplete() const;
  bool AnyWorkerAlive() const;
  bool AllWorkersFinished() const;
  // True when every member has sent a heartbeat at this time or later.
  bool AllHeardSince(int64_t micros) const;
  // True when every living member has been told that the job is over.
  bool EveryoneKnowsEnd() const;
  // The last step begun by any worker.
  int64_t HighestBegun() const;
  // A worker's last begun step; for a server the highest of all workers.
  int64_t LastStepOf(const Place& place) const {
    return place.role == v1::ROLE_WORKER ? place.begun_step : HighestBegun();
  }
  // Whether process `pid` took over this rank, in addition to an earlier one.
  bool IsAdopted(uint32_t rank, int64_t pid) const;
  // "server 1, worker 0, worker 2 and 5 more": the places without a living
  // holder, and the model if it is not declared.
  std::string Missing(bool declared) const;

 private:
  // Empty when there is no such role.
  absl::Span<Place> Places(v1::Role role);
  // Null when there is no such place.
  Place* Find(v1::Role role, uint32_t index);

  const int64_t lease_micros_;
  const size_t num_servers_;
  std::vector<Place> places_;  // servers, then workers
  uint64_t last_incarnation_ = 0;
  uint64_t revision_ = 0;
};

}  // namespace tributary
