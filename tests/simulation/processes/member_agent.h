// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/member/place_search.h"
#include "common/member/state/member_state.h"
#include "tests/simulation/processes/simulated_coordinator.h"
#include "tests/simulation/world/network.h"
#include "tests/simulation/world/world.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary::simulation {

// A server's or worker's side of the coordinator protocol, as Member in
// common/member but without its thread. MemberState makes the decisions.
class MemberAgent {
 public:
  struct Options {
    World* world = nullptr;
    Network* network = nullptr;
    Process* process = nullptr;
    v1::RegisterRequest registration;
    // Called when the process has a place, or cannot get one.
    std::function<void(absl::Status)> on_joined;
    // Called after each heartbeat, when something may have changed.
    std::function<void()> on_news;
  };

  explicit MemberAgent(Options options) : options_(std::move(options)) {}

  void Join();
  // Stops sending and receiving.
  void Leave() { left_ = true; }

  uint32_t index() const { return place_.index(); }
  uint64_t incarnation() const { return place_.incarnation(); }
  bool recomputes() const { return place_.recomputes(); }
  uint64_t job_id() const { return place_.job_id(); }
  MemberState& state() { return *state_; }

  void DeclareModel(const v1::DeclareModelRequest& declaration,
                    Reply<v1::DeclareModelResponse> done);
  void GetPlan(uint64_t min_epoch, Reply<v1::Plan> done);
  // Sends a heartbeat at once if something is urgent.
  void Nudge();
  // Reports why this process is about to end, then calls `done`.
  void Fail(const absl::Status& why, std::function<void()> done);

 private:
  using Kind = World::Kind;

  template <typename Request, typename T>
  using Method = absl::StatusOr<T> (SimulatedCoordinator::*)(const Request&);

  // Retries until the timeout, as CoordinatorClient does.
  template <typename Request, typename T>
  void Call(const char* what, Kind kind, absl::Duration timeout,
            Method<Request, T> method, const Request& request,
            std::type_identity_t<Reply<T>> done, int attempt = 1);
  void After(absl::Duration pause, Kind kind, std::function<void()> then);
  absl::Duration Backoff(int attempt);
  // The place that this process's ticket proves.
  MemberPlace Place() const {
    return {.job_id = job_id(),
            .role = options_.registration.role(),
            .index = index(),
            .incarnation = incarnation()};
  }
  absl::Duration Now() const {
    return absl::Microseconds(options_.world->now());
  }
  void TryToJoin();
  void TryToGetPlan(uint64_t min_epoch, Reply<v1::Plan> done, int attempt);
  void Beat();

  const Options options_;
  std::optional<PlaceSearch> search_;
  v1::RegisterResponse place_;
  std::optional<MemberState> state_;
  bool left_ = false;
  bool beating_ = false;
  int64_t next_beat_ = 0;  // invalidates an earlier timer
};

}  // namespace tributary::simulation
