// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tributary {

// The part of a process or a person in a job. A certificate names one role.
enum class PeerRole {
  kCoordinator,
  kServer,
  kWorker,
  kOperator,  // a person who looks at a job and stops it
  kMonitor,   // a program that reads health and metrics
};

// All roles, in the order of the enumeration.
const std::vector<PeerRole>& AllPeerRoles();

// "coordinator", "server", "worker", "operator", "monitor".
std::string PeerRoleName(PeerRole role);

// The job and the role of a certificate's holder. The certificate has them as a
// URI among its subject alternative names, in the form of SPIFFE:
// "spiffe://tributary/JOB/ROLE", or "spiffe://tributary/ROLE" for every job of
// the certificate authority.
// Source: SPIFFE-ID, https://github.com/spiffe/spiffe/blob/main/standards.
struct PeerIdentity {
  std::string job;  // the job file's name; empty: every job
  PeerRole role = PeerRole::kMonitor;

  std::string Uri() const;

  friend bool operator==(const PeerIdentity&, const PeerIdentity&) = default;
};

// InvalidArgument: `uri` does not have the form that Uri writes.
absl::StatusOr<PeerIdentity> ParsePeerIdentity(absl::string_view uri);

// InvalidArgument: the name cannot be written into a URI as it is. Letters,
// digits, "-", "_" and "." can, up to 128 of them.
absl::Status CheckJobInIdentity(absl::string_view job);

}  // namespace tributary
