// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/member/member_options.h"
#include "common/member/simulated_host.h"
#include "tests/simulation/job/context.h"
#include "tests/simulation/processes/simulated_coordinator.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary::simulation {

// The machine of a Member in a simulated process: carries its calls to the
// coordinator over the simulated network.
class MemberHost final : public SimulatedHost {
 public:
  MemberHost(Context* context, Process* process)
      : context_(context), process_(process) {}

  // The options of a Member of this process. number: tells the Members of one
  // process apart.
  MemberOptions Options(v1::Role role, const std::string& number = "");

  std::string name() const override { return process_->name(); }
  int64_t pid() const override { return process_->pid(); }
  absl::Status Call(const google::protobuf::Message& request,
                    absl::Duration timeout,
                    google::protobuf::Message* response) override;
  double Chance() override { return context_->world.random().Uniform(); }

 private:
  template <typename T>
  using Serve = std::function<void(SimulatedCoordinator&, Reply<T>)>;

  // Makes the call and waits for its answer.
  template <typename T>
  absl::Status Await(const char* what, World::Kind kind, absl::Duration timeout,
                     const Serve<T>& serve,
                     google::protobuf::Message* response);
  // The same for a call that the coordinator answers at once.
  template <typename Request, typename T>
  absl::Status Await(const char* what, World::Kind kind, absl::Duration timeout,
                     absl::StatusOr<T> (JobCalls::*method)(const Request&),
                     const Request& request,
                     google::protobuf::Message* response);

  Context* const context_;
  Process* const process_;
  MemberPlace place_;  // which the ticket of this process proves
};

}  // namespace tributary::simulation
