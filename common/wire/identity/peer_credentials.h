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

// Limit of a file with certificates or a key.
inline constexpr size_t kMostPemBytes = 1 << 20;

// The certificate of this process, and the rules by which it accepts those of
// its peers. Both ends of a connection show a certificate (TLS, RFC 8446). A
// peer's must come from the same authority and name a role of Tributary. If
// both name a job, it must be the same job. Thread-safe.
class PeerCredentials {
 public:
  // The names of the files in a folder, as those of a Kubernetes secret of type
  // kubernetes.io/tls and of cert-manager.
  static constexpr char kAuthorityFile[] = "ca.crt";
  static constexpr char kCertificateFile[] = "tls.crt";
  static constexpr char kKeyFile[] = "tls.key";

  // Reads the files of a folder, and again every `reload`, which is at least a
  // second. New connections use the newest files; existing ones go on. Replace
  // all files at once, by renaming a folder or a link. NotFound: a file is
  // missing. InvalidArgument: a file is not what it should be; the message
  // names it.
  static absl::StatusOr<std::shared_ptr<const PeerCredentials>> FromFolder(
      const std::string& folder, absl::Duration reload = absl::Seconds(60));
  // The same for a folder that has only the authority's certificate, of a
  // process that shows a token instead of a certificate. Such a process cannot
  // serve.
  static absl::StatusOr<std::shared_ptr<const PeerCredentials>>
  AuthorityFromFolder(const std::string& folder,
                      absl::Duration reload = absl::Seconds(60));

  // The same from PEM texts, which never change.
  static absl::StatusOr<std::shared_ptr<const PeerCredentials>> FromPem(
      const std::string& authority, const Credential& own);

  // This process's identity, from its certificate as it was read first. Without
  // a certificate: the default identity, which is for every job.
  const PeerIdentity& identity() const { return identity_; }
  bool has_certificate() const { return has_certificate_; }
  // The content of this process's certificate as it is now: a folder's file is
  // read again. NotFound: there is no certificate, or the file is missing.
  absl::StatusOr<CertificateFacts> OwnFacts() const;
  // FailedPrecondition: peers refuse this process's certificate at this time,
  // because it has expired or is not valid yet. The message names the file.
  absl::Status CheckOwnDates(absl::Time now) const;
  absl::Status CheckOwnDates() const;  // at the present time

  // The credentials of a port that serves only peers. Without
  // certificates_only, callers that have no certificate are let through,
  // because they may show a token.
  std::shared_ptr<grpc::ServerCredentials> ForServer(
      bool certificates_only = true) const;
  // The credentials of a channel to a peer of this role. A connection to any
  // other peer fails, and calls are then answered with UNAVAILABLE.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(PeerRole server) const;

 private:
  using Provider = grpc::experimental::CertificateProviderInterface;

  PeerCredentials(PeerIdentity identity, bool has_certificate,
                  std::shared_ptr<Provider> provider, std::string own_path,
                  std::string own_pem);

  const PeerIdentity identity_;
  const bool has_certificate_;
  const std::shared_ptr<Provider> provider_;
  const std::string own_path_;  // of the certificate; empty: own_pem_ is it
  const std::string own_pem_;
};

// The caller's identity, from the certificate of its connection.
// Unauthenticated: the connection has none.
absl::StatusOr<PeerIdentity> CallerOf(const grpc::AuthContext& context);

}  // namespace tributary
