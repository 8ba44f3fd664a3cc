#include "tests/simulation/processes/member_agent.h"

#include <algorithm>
#include <utility>

#include "common/member/coordinator_client.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {
namespace {

// As in Member and CoordinatorClient.
constexpr int64_t kJoinTimeout = 60 * kSecond;
constexpr int64_t kJoinChunk = 5 * kSecond;
constexpr int64_t kFullPause = 250 * kMilli;
constexpr int64_t kHeartbeatTimeout = 2 * kSecond;
constexpr int64_t kCallTimeout = 30 * kSecond;
constexpr int64_t kAttemptTimeout = 5 * kSecond;
constexpr int64_t kLostTimeout = 30 * kSecond;
constexpr int64_t kPlanPoll = 2 * kSecond;

}  // namespace

void MemberAgent::After(int64_t micros, Kind kind, std::function<void()> then) {
  options_.world->After(micros, options_.process, kind,
                        [this, then = std::move(then)] {
                          if (!left_) then();
                        });
}

int64_t MemberAgent::Backoff(int attempt) {
  return absl::ToInt64Microseconds(CoordinatorClient::kRetry.Pause(
      attempt - 1, options_.world->random().Uniform()));
}

template <typename Request, typename T>
void MemberAgent::Call(const char* what, Kind kind, int64_t timeout_micros,
                       Method<Request, T> method, const Request& request,
                       std::type_identity_t<Reply<T>> done, int attempt) {
  const int64_t until = options_.world->now() + timeout_micros;
  options_.network->Call<T>(
      options_.process, SimulatedCoordinator::kAddress, what, kind,
      std::min(timeout_micros, kAttemptTimeout),
      [method, request](Process& process, Reply<T> reply) {
        reply((static_cast<SimulatedCoordinator&>(process).*method)(request));
      },
      [=, this](absl::StatusOr<T> answer) {
        if (left_) return;
        const int64_t left = until - options_.world->now();
        if (answer.ok() || !MayPass(answer.status())) return done(answer);
        if (left <= 0)
          return done(absl::UnavailableError("coordinator is gone"));
        const int64_t pause = std::min(Backoff(attempt), left);
        After(pause, kind, [=, this] {
          Call(what, kind, left - pause, method, request, done, attempt + 1);
        });
      });
}

void MemberAgent::Join() { TryToJoin(options_.world->now()); }

void MemberAgent::TryToJoin(int64_t since) {
  const int64_t left = since + kJoinTimeout - options_.world->now();
  Call("register", Kind::kWork, std::clamp<int64_t>(left, 0, kJoinChunk),
       &SimulatedCoordinator::Register, options_.registration,
       [this, since](absl::StatusOr<v1::RegisterResponse> place) {
         if (!place.ok()) {
           const bool wait = absl::IsUnavailable(place.status()) ||
                             absl::IsAlreadyExists(place.status());
           if (!wait || options_.world->now() - since >= kJoinTimeout) {
             return options_.on_joined(place.status());
           }
           After(absl::IsAlreadyExists(place.status()) ? kFullPause : 0,
                 Kind::kIdle, [this, since] { TryToJoin(since); });
           return;
         }
         place_ = *std::move(place);
         state_.emplace(options_.registration.role(), place_, "coordinator",
                        kLostTimeout, options_.world->now());
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
  Call("declare", Kind::kWork, kCallTimeout,
       &SimulatedCoordinator::DeclareModel, request, std::move(done));
}

void MemberAgent::GetPlan(uint64_t min_epoch, Reply<v1::Plan> done) {
  TryToGetPlan(min_epoch, std::move(done), 1);
}

void MemberAgent::TryToGetPlan(uint64_t min_epoch, Reply<v1::Plan> done,
                               int attempt) {
  options_.network->Call<v1::Plan>(
      options_.process, SimulatedCoordinator::kAddress, "get plan", Kind::kWork,
      kPlanPoll + kAttemptTimeout,
      [min_epoch](Process& process, Reply<v1::Plan> reply) {
        static_cast<SimulatedCoordinator&>(process).GetPlan(
            min_epoch, kPlanPoll, std::move(reply));
      },
      [=, this](absl::StatusOr<v1::Plan> plan) {
        if (left_) return;
        if (plan.ok()) {
          state_->OnPlan(plan->epoch(), plan->start_step());
          return done(plan);
        }
        if (!MayPass(plan.status()) || !state_->end().ok() ||
            state_->phase() == v1::JOB_PHASE_DONE) {
          return done(plan);
        }
        const bool waited = absl::IsDeadlineExceeded(plan.status());
        After(waited ? 0 : Backoff(attempt), Kind::kIdle, [=, this] {
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
  Call("heartbeat", Kind::kIdle, kHeartbeatTimeout,
       &SimulatedCoordinator::Heartbeat, request,
       [this, request](absl::StatusOr<v1::HeartbeatResponse> answer) {
         beating_ = false;
         if (answer.ok()) {
           state_->OnAnswer(request, *answer, options_.world->now());
         } else {
           state_->OnError(answer.status(), options_.world->now());
         }
         const bool last =
             !state_->end().ok() || state_->phase() == v1::JOB_PHASE_DONE;
         const int64_t mine = ++next_beat_;
         if (!last) {
           After(state_->Urgent() ? 0 : place_.heartbeat_ms() * kMilli,
                 Kind::kIdle, [this, mine] {
                   if (mine == next_beat_ && !beating_) Beat();
                 });
         }
         options_.on_news();
       });
}

void MemberAgent::Fail(const absl::Status& why, std::function<void()> done) {
  if (!state_ || !state_->end().ok()) return done();
  v1::HeartbeatRequest request = state_->NextHeartbeat();
  request.clear_steps();
  request.set_finished(false);
  request.set_error(std::string(why.message()));
  Call("last words", Kind::kIdle, kHeartbeatTimeout,
       &SimulatedCoordinator::Heartbeat, request,
       [done](const absl::StatusOr<v1::HeartbeatResponse>&) { done(); });
}

}  // namespace tributary::simulation
