#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/coordinator_state.pb.h"

namespace tributary {

// The arithmetic of a place whose holders computed on several kinds of devices.
inline constexpr char kSeveralArithmetics[] = "several";

// One shard or rank and who holds it.
struct Place {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t index = 0;
  // The last; empty instance: nobody yet. Its `arithmetic` is that of all
  // holders so far that have named theirs, or kSeveralArithmetics.
  v1::RegisterRequest holder;
  uint64_t incarnation = 0;  // of the holder; 0: nobody yet
  uint32_t holders = 0;      // processes that have held it
  uint32_t losses = 0;       // leases that ran out, processes that were gone
  bool alive = false;        // its lease has not run out
  bool finished = false;     // it said so; it may go, no lease counts
  bool knows_end = false;    // it was told that the job is over
  int64_t last_heartbeat_micros = 0;
  v1::HeartbeatRequest latest;  // without its steps
  int64_t stop_bound = -1;      // begun step when it paused; -1: it runs

  // Makes it the latest, without its steps and reports; cuts what is longer
  // than any member of a job of so many workers has to say.
  void Keep(const v1::HeartbeatRequest& heartbeat, size_t num_workers);
  // What the heartbeat counts, and nothing else.
  void KeepFigures(const v1::HeartbeatRequest& heartbeat);
  // Whether a process with this arithmetic may compute other bits than those
  // that held the place before.
  bool Recomputes(const std::string& arithmetic) const {
    return !arithmetic.empty() && arithmetic != holder.arithmetic();
  }
  // "worker 1 (10.0.0.2, pid 55)"
  std::string Name() const;
};

// The places of a job, their leases and incarnations. State in, answer out:
// time is passed in, and whoever calls decides what a lost member means.
class Membership {
 public:
  static constexpr int kMaxWorkers = 1024;

  Membership(int num_servers, int num_workers, int64_t lease_micros);

  // The holder's own place again when its instance is known (the same
  // incarnation while its lease lives), else the lowest free one, or the wanted
  // one. A new holder gets a higher incarnation than anybody before.
  // InvalidArgument: fields. AlreadyExists: no place is free, or another living
  // server has this address.
  absl::StatusOr<const Place*> Register(const v1::RegisterRequest& request,
                                        int64_t now_micros);

  // The place, its lease renewed. InvalidArgument: there is no such place.
  // FailedPrecondition: the lease is lost, or another holds the place.
  absl::StatusOr<Place*> Renew(v1::Role role, uint32_t index,
                               uint64_t incarnation, int64_t now_micros);

  // Ends the leases that have run out; returns whose. Each is returned once;
  // one that had finished is no loss and not returned.
  std::vector<Place*> Expire(int64_t now_micros);

  // Ends the lease of a holder whose process is known to be gone. Null when
  // this process does not hold the place, or no more.
  Place* Expel(v1::Role role, uint32_t index, int64_t pid);
  // The same for each place that this process holds, on the host of `index`.
  void ExpelProcess(v1::Role role, uint32_t index, int64_t pid);

  // Everybody starts over: nobody has begun, paused or finished anything.
  void StartOver();

  // Renews every living lease: for a coordinator that was away itself (stopped
  // by a signal, or a machine that slept) and could hear nobody.
  void RenewAll(int64_t now_micros);

  std::vector<Place>& servers() { return servers_; }
  std::vector<Place>& workers() { return workers_; }
  const std::vector<Place>& servers() const { return servers_; }
  const std::vector<Place>& workers() const { return workers_; }

  // Who holds what, for a coordinator that goes on after its own end; leases
  // begin anew.
  void Save(v1::CoordinatorState* state) const;
  void Restore(const v1::CoordinatorState& state, int64_t now_micros);

  // Every place has a living holder; every server's has.
  bool Complete() const;
  bool ServersComplete() const;
  // "server 1, worker 0, worker 2 and 5 more": the places without one, and the
  // model unless it is declared.
  std::string Missing(bool declared) const;

 private:
  std::vector<Place>* Places(v1::Role role);

  const int64_t lease_micros_;
  std::vector<Place> servers_;
  std::vector<Place> workers_;
  uint64_t last_incarnation_ = 0;
};

}  // namespace tributary
