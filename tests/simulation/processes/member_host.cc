// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/processes/member_host.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/simulation/world/micros.h"

namespace tributary::simulation {

using Kind = World::Kind;

MemberOptions MemberHost::Options(v1::Role role, const std::string& number) {
  MemberOptions options;
  options.coordinator = SimulatedCoordinator::kAddress;
  options.role = role;
  options.instance = absl::StrCat(name(), "-", pid(), number);
  options.clock = context_->world.clock();
  options.simulated = this;
  return options;
}

template <typename T>
absl::Status MemberHost::Await(const char* what, Kind kind,
                               absl::Duration timeout, const Serve<T>& serve,
                               google::protobuf::Message* response) {
  // The answer may arrive after the end of this thread.
  const auto answer = std::make_shared<std::optional<absl::StatusOr<T>>>();
  context_->network.Call<T>(
      process_, SimulatedCoordinator::kAddress, what, kind,
      absl::ToInt64Microseconds(timeout),
      [serve](Process& process, Reply<T> reply) {
        serve(static_cast<SimulatedCoordinator&>(process), std::move(reply));
      },
      [answer](absl::StatusOr<T> arrived) { *answer = std::move(arrived); });
  context_->fibers.Await([&answer] { return answer->has_value(); });
  if (!answer->has_value()) return absl::CancelledError("the process is gone");
  if (!(*answer)->ok()) return (*answer)->status();
  *static_cast<T*>(response) = **std::move(*answer);
  return absl::OkStatus();
}

template <typename Request, typename T>
absl::Status MemberHost::Await(
    const char* what, Kind kind, absl::Duration timeout,
    absl::StatusOr<T> (JobCalls::*method)(const Request&),
    const Request& request, google::protobuf::Message* response) {
  return Await<T>(
      what, kind, timeout,
      [method, request](SimulatedCoordinator& coordinator, Reply<T> reply) {
        reply((coordinator.control().calls().*method)(request));
      },
      response);
}

absl::Status MemberHost::Call(const google::protobuf::Message& request,
                              absl::Duration timeout,
                              google::protobuf::Message* response) {
  if (const auto* beat = dynamic_cast<const v1::HeartbeatRequest*>(&request)) {
    return Await("heartbeat", Kind::kIdle, timeout, &JobCalls::Heartbeat, *beat,
                 response);
  }
  if (const auto* plan = dynamic_cast<const v1::GetPlanRequest*>(&request)) {
    return Await<v1::Plan>(
        "get plan", Kind::kWork, timeout,
        [place = place_, request = *plan](SimulatedCoordinator& coordinator,
                                          Reply<v1::Plan> reply) {
          coordinator.GetPlan(request, place, std::move(reply));
        },
        response);
  }
  if (const auto* model =
          dynamic_cast<const v1::DeclareModelRequest*>(&request)) {
    return Await<v1::DeclareModelResponse>(
        "declare", Kind::kWork, timeout,
        [request = *model](SimulatedCoordinator& coordinator,
                           const Reply<v1::DeclareModelResponse>& reply) {
          const absl::Status status =
              coordinator.control().calls().DeclareModel(request);
          if (!status.ok()) return reply(status);
          reply(v1::DeclareModelResponse());
        },
        response);
  }
  if (const auto* place = dynamic_cast<const v1::RegisterRequest*>(&request)) {
    const absl::Status status = Await("register", Kind::kWork, timeout,
                                      &JobCalls::Register, *place, response);
    if (!status.ok()) return status;
    const auto& got = *static_cast<const v1::RegisterResponse*>(response);
    place_ = {.job_id = got.job_id(),
              .role = place->role(),
              .index = got.index(),
              .incarnation = got.incarnation()};
    return status;
  }
  const std::string name(request.GetDescriptor()->name());
  context_->world.Violate(absl::StrCat("nobody simulates ", name));
  return absl::UnimplementedError(name);
}

}  // namespace tributary::simulation
