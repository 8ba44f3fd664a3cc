// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/security/identity.h"

namespace grpc {
class ChannelCredentials;
class ClientContext;
}  // namespace grpc

namespace tributary {

class PeerCredentials;

// The metadata of a call that prove who calls. gRPC encodes values whose key
// ends in -bin.
inline constexpr char kTicketKey[] = "tributary-ticket-bin";
inline constexpr char kTokenKey[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";  // RFC 6750

// The proof of a process to those that it calls: its certificate, or the job's
// token, and the ticket of its place in the job. Without any of them calls go
// in clear text. A value: copies share the certificate.
class CallerProof {
 public:
  CallerProof() = default;
  // `tls`: null for clear text. `token`: may be empty; is sent only with `tls`.
  CallerProof(std::shared_ptr<const PeerCredentials> tls, std::string token);

  // The same with the ticket of a place (RegisterResponse.ticket).
  CallerProof WithTicket(std::string ticket) const;
  const std::string& ticket() const { return ticket_; }
  bool encrypted() const { return tls_ != nullptr; }
  // As PeerCredentials::CheckOwnDates; OK without a certificate.
  absl::Status CheckDates() const;

  // The credentials for channels to a process of this role.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(PeerRole server) const;
  // Adds token and ticket to a call that is about to begin.
  void AddTo(grpc::ClientContext* context) const;

 private:
  std::shared_ptr<const PeerCredentials> tls_;
  std::string token_;
  std::string ticket_;
};

}  // namespace tributary
