// SPDX-License-Identifier: Apache-2.0
#include "common/security/method_access.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using Roles = std::vector<PeerRole>;
constexpr PeerRole kCoordinator = PeerRole::kCoordinator;
constexpr PeerRole kServer = PeerRole::kServer;
constexpr PeerRole kWorker = PeerRole::kWorker;
constexpr PeerRole kOperator = PeerRole::kOperator;
constexpr PeerRole kMonitor = PeerRole::kMonitor;

MethodAccess Coordinator(const char* method, Roles roles, Roles ticket = {}) {
  return {absl::StrCat("/tributary.v1.CoordinatorService/", method),
          std::move(roles), std::move(ticket)};
}
MethodAccess Parameter(const char* method, Roles roles, Roles ticket = {}) {
  return {absl::StrCat("/tributary.v1.ParameterService/", method),
          std::move(roles), std::move(ticket)};
}

bool Contains(const Roles& roles, PeerRole role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

std::vector<MethodAccess> MakeAccessTable() {
  const Roles worker = {kWorker};
  const Roles members = {kServer, kWorker};
  const Roles readers = {kServer, kWorker, kOperator};
  const Roles& everybody = AllPeerRoles();
  return {
      Coordinator("SubmitJob", {kWorker, kOperator}),
      // Gives the ticket; the request's role must be the certificate's.
      Coordinator("Register", {kServer, kWorker, kOperator}),
      Coordinator("DeclareModel", worker, worker),
      Coordinator("GetPlan", readers, readers),
      Coordinator("Heartbeat", members, members),
      Coordinator("ReportEvaluation", worker, worker),
      Coordinator("AwaitEvaluation", worker, worker),
      Coordinator("Exchange", worker, worker),
      Coordinator("PutWeights", worker, worker),
      Coordinator("GetJobStatus", everybody),
      Coordinator("StopJob", {kOperator}),
      Coordinator("TakeCheckpoint", {kOperator}),
      Parameter("PushPull", worker, worker),
      // The coordinator reads the final weights, an observer those of a running
      // job.
      Parameter("Pull", {kWorker, kCoordinator, kOperator},
                {kWorker, kCoordinator, kOperator}),
      Parameter("ReadClock", worker, worker),
      Parameter("Initialize", worker, worker),
      Parameter("ReadStatistics", {kServer}, {kServer}),
      Parameter("GetServerStatus", {kCoordinator, kOperator, kMonitor}),
      {"/grpc.health.v1.Health/Check", everybody, {}},
      {"/grpc.health.v1.Health/Watch", everybody, {}},
      {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
       {kOperator},
       {}},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
       {kOperator},
       {}},
  };
}

}  // namespace

bool MethodAccess::MayCall(PeerRole role) const {
  return Contains(roles, role);
}

bool MethodAccess::MayCallWithTicket(PeerRole role) const {
  return Contains(ticket_roles, role);
}

const std::vector<MethodAccess>& AllMethodAccess() {
  static const auto* const table =
      new std::vector<MethodAccess>(MakeAccessTable());
  return *table;
}

const MethodAccess* AccessTo(absl::string_view method) {
  for (const MethodAccess& access : AllMethodAccess()) {
    if (access.method == method) return &access;
  }
  return nullptr;
}

}  // namespace tributary
