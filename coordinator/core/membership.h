#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The arithmetic of a place whose holders have used several kinds of devices.
inline constexpr char kSeveralArithmetics[] = "several";

// A shard or rank, and the process that holds it.
struct Place {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t index = 0;
  // The latest holder; an empty instance: none yet. Its `arithmetic` is the one
  // that all holders so far have reported, or kSeveralArithmetics if they
  // differ.
  v1::RegisterRequest holder;
  uint64_t incarnation = 0;  // of the holder; 0: none yet
  uint32_t holders = 0;      // processes that have held the place
  uint32_t losses = 0;       // leases that expired, processes that ended
  bool alive = false;        // its lease has not expired
  bool finished = false;     // reported finished; it may exit
  bool knows_end = false;    // it was told that the job is over
  int64_t last_heartbeat_micros = 0;
  v1::HeartbeatRequest latest;  // without its steps
  int64_t stop_bound = -1;      // begun step when it paused; -1: not paused

  // Stores the heartbeat as `latest`, without its steps and reports. Texts and
  // lists longer than any that a member of such a job needs are cut.
  void Keep(const v1::HeartbeatRequest& heartbeat, size_t num_workers);
  // Stores only the counters of the heartbeat.
  void KeepFigures(const v1::HeartbeatRequest& heartbeat);
  // Whether a process with this arithmetic may compute other bits than earlier
  // holders of the place.
  bool Recomputes(const std::string& arithmetic) const {
    return !arithmetic.empty() && arithmetic != holder.arithmetic();
  }
  // "worker 1 (10.0.0.2, pid 55)"
  std::string Name() const;
};

// The places of a job, their leases and incarnations. A plain object: time is
// passed in, and the caller decides what a lost member means.
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
  absl::StatusOr<Place*> Renew(v1::Role role, uint32_t index,
                               uint64_t incarnation, int64_t now_micros);

  // Ends expired leases and returns their places, each once. A worker that had
  // finished is not a loss and is not returned.
  std::vector<Place*> Expire(int64_t now_micros);

  // Ends the lease of a holder whose process is known to be gone. Null when
  // this process does not hold the place, or no longer.
  Place* Expel(v1::Role role, uint32_t index, int64_t pid);
  // Does the same for every place that this process holds on the host of
  // `index`.
  void ExpelProcess(v1::Role role, uint32_t index, int64_t pid);

  // All members start over: clears every worker's begun, paused and finished
  // state.
  void StartOver();

  // Renews every living lease. For a coordinator that was suspended (stopped by
  // a signal, or on a machine that slept) and could not receive heartbeats.
  void RenewAll(int64_t now_micros);

  std::vector<Place>& servers() { return servers_; }
  std::vector<Place>& workers() { return workers_; }
  const std::vector<Place>& servers() const { return servers_; }
  const std::vector<Place>& workers() const { return workers_; }

  // Saves and restores the holders, for a restarted coordinator; their
  // leases start again.
  void Save(v1::CoordinatorState* state) const;
  void Restore(const v1::CoordinatorState& state, int64_t now_micros);

  // True when every place (every server's place) has a living holder.
  bool Complete() const;
  bool ServersComplete() const;
  // "server 1, worker 0, worker 2 and 5 more": the places without a living
  // holder, and the model if it is not declared.
  std::string Missing(bool declared) const;

 private:
  std::vector<Place>* Places(v1::Role role);

  const int64_t lease_micros_;
  std::vector<Place> servers_;
  std::vector<Place> workers_;
  uint64_t last_incarnation_ = 0;
};

}  // namespace tributary
