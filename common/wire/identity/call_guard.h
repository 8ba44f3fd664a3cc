// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/string_ref.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/security/identity.h"
#include "common/wire/identity/member_ticket.h"
#include "common/wire/identity/peer_credentials.h"
#include "common/wire/port/peer_connections.h"

namespace tributary {

// The caller, as far as the call proves who calls.
struct Caller {
  std::optional<PeerIdentity> identity;  // of the certificate
  bool has_token = false;                // the job's
  std::optional<MemberPlace> place;      // of the ticket, if one was wanted
  std::string address;                   // "ipv4:10.0.0.2:40000"
  bool unchecked = false;                // admitted by CallGuard::Open

  // PermissionDenied unless the ticket is of this place.
  absl::Status SpeaksFor(v1::Role role, uint32_t index,
                         uint64_t incarnation) const;
  // PermissionDenied when the certificate is of another role than members with
  // this role have.
  absl::Status MayRegisterAs(v1::Role role) const;
  // The account to which the costs of the call are charged.
  PeerConnections::CallerAccount Account() const;
  // The caller in the log:
  // "spiffe://tributary/digits/worker at ipv4:10.0.0.2:40000".
  std::string Name() const;
};

// Decides about every call that reaches a port of this process: who calls, and
// whether the table of common/security/method_access.h lets them. The answers
// to strangers tell nothing but the code:
//   UNAUTHENTICATED     no certificate of a peer of this job and no valid
//                       token, or no valid ticket
//   PERMISSION_DENIED   a role that may not call the method, or a ticket of
//                       another place
//   FAILED_PRECONDITION a ticket of another job
//   UNAVAILABLE         this process does not know its job yet
//   RESOURCE_EXHAUSTED  too many calls of this caller are still arriving
// A port with certificates decides when a call's headers have arrived, before
// it keeps a byte of the message; a port in clear text once the message is
// there. Thread-safe; held by std::shared_ptr.
class CallGuard : public std::enable_shared_from_this<CallGuard> {
 public:
  struct Options {
    std::shared_ptr<const PeerCredentials> tls;  // null: clear text
    // Replaces a certificate of any role except coordinator. Empty: no token.
    std::string token;
    const Clock* clock = &Clock::Real();  // for the pauses of the log
  };
  // The job to which callers must belong.
  struct Job {
    std::string name;
    uint64_t id = 0;
    std::string key;  // of tickets
  };

  explicit CallGuard(Options options);
  // Admits every call, for a process that only its own tests use.
  static std::shared_ptr<CallGuard> Open();

  std::shared_ptr<grpc::ServerCredentials> ForServer() const;
  void SetJob(Job job);

  // Decides about a call whose message has arrived, with this size. A call that
  // is refused by its headers is logged without an address, because gRPC does
  // not know it at that time.
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context,
                               absl::string_view method,
                               size_t message_bytes) const;
  // Checks that a ticket that did not come with a call is of this rank. Returns
  // the place that it proves, with an incarnation that the caller checks;
  // nullopt: this guard is Open. Errors as Admit.
  absl::StatusOr<std::optional<MemberPlace>> CheckRank(absl::string_view ticket,
                                                       uint32_t rank) const;

  // The connections of this process's ports; never null.
  const std::shared_ptr<PeerConnections>& connections() const {
    return connections_;
  }
  uint64_t refused() const { return refused_; }
  bool encrypted() const { return options_.tls != nullptr; }

 private:
  class HeaderGate;
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  absl::StatusOr<Caller> Admit(const Metadata& metadata,
                               const grpc::AuthContext* connection,
                               std::string address,
                               absl::string_view method) const;
  absl::Status Identify(const Metadata& metadata,
                        const grpc::AuthContext* connection,
                        Caller* caller) const;
  absl::StatusOr<MemberPlace> PlaceOf(absl::string_view ticket) const;
  // Counts and logs the refusal, at most once a second.
  absl::Status Refuse(absl::Status status, absl::string_view method,
                      const Caller& caller) const;

  const Options options_;
  const bool open_ = false;
  const std::shared_ptr<PeerConnections> connections_;
  mutable std::atomic<uint64_t> refused_{0};
  mutable absl::Mutex mu_;
  Job job_ ABSL_GUARDED_BY(mu_);
  mutable int64_t logged_micros_ ABSL_GUARDED_BY(mu_) = INT64_MIN / 2;
  mutable uint64_t logged_ ABSL_GUARDED_BY(mu_) = 0;

  CallGuard();  // Open
};

}  // namespace tributary
