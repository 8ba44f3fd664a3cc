// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificate_authority.h"
#include "common/security/identity.h"

namespace tributary {

// What a process proves itself with to its peers, and what it accepts from
// them: TLS in both directions (RFC 8446). A peer must have a certificate of
// the same authority that names a role of Tributary. If both certificates name
// a job, it must be the same. Thread-safe.
class PeerCredentials {
 public:
  // The names of the files in a folder, as those of a Kubernetes secret of type
  // kubernetes.io/tls and of cert-manager.
  static constexpr char kAuthorityFile[] = "ca.crt";
  static constexpr char kCertificateFile[] = "tls.crt";
  static constexpr char kKeyFile[] = "tls.key";

  // Reads the files of a folder. They are looked at again every `reload`, at
  // least a second: connections that are made afterwards use what is there
  // then, and existing ones go on. Replace the files together, by renaming a
  // folder or a link. NotFound: a file is missing. InvalidArgument: a file is
  // not what it should be; the message names it.
  static absl::StatusOr<std::shared_ptr<const PeerCredentials>> FromFolder(
      const std::string& folder, absl::Duration reload = absl::Seconds(60));

  // The same from PEM texts, which never change.
  static absl::StatusOr<std::shared_ptr<const PeerCredentials>> FromPem(
      const std::string& authority, const Credential& own);

  // What the own certificate said when it was read.
  const PeerIdentity& identity() const { return identity_; }

  // For a port on which only peers are served.
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;
  // For a channel to a peer of this role. A connection to any other fails, and
  // calls are then answered with UNAVAILABLE.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(PeerRole server) const;

 private:
  using Provider = grpc::experimental::CertificateProviderInterface;

  PeerCredentials(PeerIdentity identity, std::shared_ptr<Provider> provider);

  const PeerIdentity identity_;
  const std::shared_ptr<Provider> provider_;
};

// Who makes a call, from the certificate of its connection. Unauthenticated:
// the connection has none.
absl::StatusOr<PeerIdentity> CallerOf(const grpc::AuthContext& context);

}  // namespace tributary
