// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/job/program/program_job.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/port/peer_port.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// Answers on a coordinator's port until the job's program has said what it
// trains (SubmitJob). It also answers those who ask for the job's status or
// stop the job. All other calls get Unavailable, which callers retry. Once the
// job is known, start the Coordinator with the sockets of HandOver.
class JobIntake {
 public:
  // `listen`: host:port; port 0: any free one. InvalidArgument: the address.
  // Unavailable: cannot listen on it.
  // `guard` decides who may call.
  static absl::StatusOr<std::unique_ptr<JobIntake>> Start(
      const std::string& listen, ProgramJobSource source,
      std::shared_ptr<const CallGuard> guard = CallGuard::Open());
  // Answers the running calls; then the port is free.
  ~JobIntake();

  // host:port, with the actual port.
  const std::string& address() const { return address_; }

  // Waits until a program has submitted the whole job; nullopt after `timeout`.
  std::optional<v1::JobSpec> Await(absl::Duration timeout);
  // Answers the running calls, and returns the sockets, which keep listening.
  // Call it once.
  ListeningSockets HandOver();
  // Why somebody has stopped the job (StopJob); nullopt if nobody has.
  std::optional<std::string> stop_reason() const;

 private:
  class Service;

  JobIntake(ProgramJobSource source, std::shared_ptr<const CallGuard> guard);

  void EndCalls();

  const std::unique_ptr<Service> service_;
  std::unique_ptr<PeerPort> port_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace tributary
