// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/member_agent.h"

#include <algorithm>
#include <utility>

#include "common/member/member.h"

namespace tributary::simulation {

void MemberAgent::After(absl::Duration pause, Kind kind,
                        std::function<void()> then) {
  options_.world->After(absl::ToInt64Microseconds(pause), options_.process,
                        kind, [this, then = std::move(then)] {
                          if (!left_) then();
                        });
}

absl::Duration MemberAgent::Backoff(int attempt) {
  return CoordinatorClient::kRetry.Pause(attempt - 1,
                                         options_.world->random().Uniform());
}

template <typename Request, typename T>
void MemberAgent::Call(const char* what, Kind kind, absl::Duration timeout,
                       Method<Request, T> method, const Request& request,
                       std::type_identity_t<Reply<T>> done, int attempt) {
  const absl::Duration until = Now() + timeout;
  options_.network->Call<T>(
      options_.process, SimulatedCoordinator::kAddress, what, kind,
      absl::ToInt64Microseconds(
          std::min(timeout, CoordinatorClient::kAttemptTimeout)),
      [method, request](Process& process, Reply<T> reply) {
        reply((static_cast<SimulatedCoordinator&>(process).*method)(request));
      },
      [=, this](absl::StatusOr<T> answer) {
        if (left_) return;
        const absl::Duration left = until - Now();
        if (answer.ok() || !MayPass(answer.status())) return done(answer);
        if (left <= absl::ZeroDuration())
          return done(absl::UnavailableError("coordinator is gone"));
        const absl::Duration pause = std::min(Backoff(attempt), left);
        After(pause, kind, [=, this] {
          Call(what, kind, left - pause, method, request, done, attempt + 1);
        });
      });
}

void MemberAgent::Join() {
  search_.emplace(Now(), MemberTimeouts::kJoin);
  TryToJoin();
}

void MemberAgent::TryToJoin() {
  Call("register", Kind::kWork, search_->CallTimeout(Now()),
       &SimulatedCoordinator::Register, options_.registration,
       [this](absl::StatusOr<v1::RegisterResponse> place) {
         if (!place.ok()) {
           const auto pause = search_->After(place.status(), Now());
           if (!pause) return options_.on_joined(place.status());
           return After(*pause, Kind::kIdle, [this] { TryToJoin(); });
         }
         place_ = *std::move(place);
         state_.emplace(options_.registration.role(), place_, "coordinator",
                        absl::ToInt64Microseconds(MemberTimeouts::kLost),
                        options_.world->now());
         TRIBUTARY_TRACE(*options_.world, options_.process->name(), " (pid ",
                         options_.process->pid(), ") has place ", index(),
                         " as incarnation ", incarnation());
         Beat();
         options_.on_joined(absl::OkStatus());
       });
}

void MemberAgent::DeclareModel(const v1::DeclareModelRequest& declaration,
                               Reply<v1::DeclareModelResponse> done) {
  v1::DeclareModelRequest request = declaration;
  request.set_rank(index());
  request.set_incarnation(incarnation());
  Call("declare", Kind::kWork, Member::kCallTimeout,
       &SimulatedCoordinator::DeclareModel, request, std::move(done));
}

void MemberAgent::GetPlan(uint64_t min_epoch, Reply<v1::Plan> done) {
  TryToGetPlan(min_epoch, std::move(done), 1);
}

void MemberAgent::TryToGetPlan(uint64_t min_epoch, Reply<v1::Plan> done,
                               int attempt) {
  options_.network->Call<v1::Plan>(
      options_.process, SimulatedCoordinator::kAddress, "get plan", Kind::kWork,
      absl::ToInt64Microseconds(CoordinatorClient::kHold +
                                CoordinatorClient::kAttemptTimeout),
      [min_epoch, member = Place()](Process& process, Reply<v1::Plan> reply) {
        static_cast<SimulatedCoordinator&>(process).GetPlan(
            min_epoch, absl::ToInt64Microseconds(CoordinatorClient::kHold),
            member, std::move(reply));
      },
      [=, this](absl::StatusOr<v1::Plan> plan) {
        if (left_) return;
        if (plan.ok()) {
          state_->OnPlan(plan->epoch(), plan->start_step());
          return done(plan);
        }
        if (!MayPass(plan.status()) || state_->over()) return done(plan);
        const bool waited = absl::IsDeadlineExceeded(plan.status());
        After(waited ? absl::ZeroDuration() : Backoff(attempt), Kind::kIdle,
              [=, this] {
                TryToGetPlan(min_epoch, done, waited ? 1 : attempt + 1);
              });
      });
}

void MemberAgent::Nudge() {
  if (!beating_ && state_ && state_->Urgent()) Beat();
}

void MemberAgent::Beat() {
  beating_ = true;
  const v1::HeartbeatRequest request = state_->NextHeartbeat();
  Call("heartbeat", Kind::kIdle, Member::kHeartbeatTimeout,
       &SimulatedCoordinator::Heartbeat, request,
       [this, request](absl::StatusOr<v1::HeartbeatResponse> answer) {
         beating_ = false;
         state_->OnResult(request, answer, options_.world->now());
         const int64_t mine = ++next_beat_;
         if (!state_->over()) {
           After(
               absl::Milliseconds(state_->Urgent() ? 0 : place_.heartbeat_ms()),
               Kind::kIdle, [this, mine] {
                 if (mine == next_beat_ && !beating_) Beat();
               });
         }
         options_.on_news();
       });
}

void MemberAgent::Fail(const absl::Status& why, std::function<void()> done) {
  if (!state_ || !state_->end().ok()) return done();
  Call("last words", Kind::kIdle, Member::kHeartbeatTimeout,
       &SimulatedCoordinator::Heartbeat,
       FinalHeartbeat(state_->NextHeartbeat(), why),
       [done](const absl::StatusOr<v1::HeartbeatResponse>&) { done(); });
}

}  // namespace tributary::simulation
