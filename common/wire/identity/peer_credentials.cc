// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/peer_credentials.h"

#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/host/small_file.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::FileWatcherCertificateProvider;
using grpc::experimental::StaticDataCertificateProvider;
using grpc::experimental::TlsCustomVerificationCheckRequest;

// When a process exits, OpenSSL would free its tables, while gRPC's threads may
// still be closing connections with them: a use after free, or a process that
// never ends. The first use of OpenSSL decides, so this is done before main.
[[maybe_unused]] const int kTablesStay =
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

// Accepts the peers that may talk to this process at all. At this point their
// certificate's chain is known to lead to the authority.
class PeerVerifier final : public ExternalCertificateVerifier {
 public:
  // `role`: of the peer; nullopt: any, at a server.
  // `optional`: the peer may have no certificate.
  PeerVerifier(std::string job, std::optional<PeerRole> role, bool optional)
      : job_(std::move(job)), role_(role), optional_(optional) {}

  bool Verify(TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/,
              grpc::Status* status) override {
    *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                           "the peer's certificate is of no peer of this job");
    if (optional_ && request->peer_cert().empty()) *status = grpc::Status::OK;
    for (const grpc::string_ref& uri : request->uri_names()) {
      const auto peer = ParsePeerIdentity({uri.data(), uri.size()});
      if (!peer.ok()) continue;
      const bool same_job =
          job_.empty() || peer->job.empty() || peer->job == job_;
      if (same_job && role_.value_or(peer->role) == peer->role) {
        *status = grpc::Status::OK;
      }
    }
    return true;  // decided
  }
  void Cancel(TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::string job_;
  const std::optional<PeerRole> role_;
  const bool optional_;
};

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  return ReadSmallFile(path, kMostPemBytes);
}

absl::Status Named(const std::string& name, const absl::Status& status) {
  return {status.code(), absl::StrCat(name, ": ", status.message())};
}

std::string PathIn(const std::string& folder, const char* name) {
  return absl::StrCat(folder, "/", name);
}

// gRPC would only log what is wrong and then refuse every connection.
absl::Status CheckAuthorityIn(const std::string& folder) {
  const std::string path = PathIn(folder, PeerCredentials::kAuthorityFile);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string authority, ReadPem(path));
  const absl::Status status = CheckAuthority(authority);
  return status.ok() ? status : Named(path, status);
}

unsigned int Seconds(absl::Duration reload) {
  return static_cast<unsigned int>(
      std::max<int64_t>(1, absl::ToInt64Seconds(reload)));
}

}  // namespace

PeerCredentials::PeerCredentials(PeerIdentity identity, bool has_certificate,
                                 std::shared_ptr<Provider> provider,
                                 std::string own_path, std::string own_pem)
    : identity_(std::move(identity)),
      has_certificate_(has_certificate),
      provider_(std::move(provider)),
      own_path_(std::move(own_path)),
      own_pem_(std::move(own_pem)) {}

absl::StatusOr<CertificateFacts> PeerCredentials::OwnFacts() const {
  if (!has_certificate_) {
    return absl::NotFoundError("this process has no certificate");
  }
  if (own_path_.empty()) return ReadCertificate(own_pem_);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string pem, ReadPem(own_path_));
  const auto facts = ReadCertificate(pem);
  return facts.ok() ? facts : Named(own_path_, facts.status());
}

absl::Status PeerCredentials::CheckOwnDates(absl::Time now) const {
  const auto facts = OwnFacts();
  // A file that is being replaced may be unreadable; that does not count as
  // expired.
  const std::string why = facts.ok() ? WhyNotValid(*facts, now) : "";
  if (why.empty()) return absl::OkStatus();
  if (own_path_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate of this process ", why));
  }
  const std::string folder =
      std::filesystem::path(own_path_).parent_path().parent_path().string();
  return absl::FailedPreconditionError(absl::StrCat(
      own_path_, " ", why,
      "; if `tributary certificates` made it, `tributary certificates --out ",
      folder.empty() ? "." : folder, "` makes a new one"));
}

absl::StatusOr<std::shared_ptr<const PeerCredentials>>
PeerCredentials::FromFolder(const std::string& folder, absl::Duration reload) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAuthorityIn(folder));
  const std::string certificate = PathIn(folder, kCertificateFile);
  Credential own;
  TRIBUTARY_ASSIGN_OR_RETURN(own.certificate, ReadPem(certificate));
  TRIBUTARY_ASSIGN_OR_RETURN(own.key, ReadPem(PathIn(folder, kKeyFile)));
  const auto facts = ReadCredential(own);
  if (!facts.ok()) return Named(certificate, facts.status());
  return std::shared_ptr<const PeerCredentials>(
      new PeerCredentials(facts->identity, /*has_certificate=*/true,
                          std::make_shared<FileWatcherCertificateProvider>(
                              PathIn(folder, kKeyFile), certificate,
                              PathIn(folder, kAuthorityFile), Seconds(reload)),
                          certificate, ""));
}

absl::StatusOr<std::shared_ptr<const PeerCredentials>>
PeerCredentials::AuthorityFromFolder(const std::string& folder,
                                     absl::Duration reload) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAuthorityIn(folder));
  return std::shared_ptr<const PeerCredentials>(
      new PeerCredentials(PeerIdentity(), /*has_certificate=*/false,
                          std::make_shared<FileWatcherCertificateProvider>(
                              PathIn(folder, kAuthorityFile), Seconds(reload)),
                          "", ""));
}

absl::StatusOr<std::shared_ptr<const PeerCredentials>> PeerCredentials::FromPem(
    const std::string& authority, const Credential& own) {
  TRIBUTARY_RETURN_IF_ERROR(CheckAuthority(authority));
  TRIBUTARY_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCredential(own));
  const std::vector<grpc::experimental::IdentityKeyCertPair> pairs = {
      {own.key, own.certificate}};
  return std::shared_ptr<const PeerCredentials>(new PeerCredentials(
      facts.identity, /*has_certificate=*/true,
      std::make_shared<StaticDataCertificateProvider>(authority, pairs), "",
      own.certificate));
}

absl::Status PeerCredentials::CheckOwnDates() const {
  return CheckOwnDates(absl::Now());
}

std::shared_ptr<grpc::ServerCredentials> PeerCredentials::ForServer(
    bool certificates_only) const {
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(
      certificates_only
          ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
          : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.set_certificate_verifier(
      ExternalCertificateVerifier::Create<PeerVerifier>(
          identity_.job, std::nullopt, !certificates_only));
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> PeerCredentials::ForChannel(
    PeerRole server) const {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  if (has_certificate_) options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  // The role in the certificate says more than the address, which changes when
  // a host is renamed or rescheduled.
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      ExternalCertificateVerifier::Create<PeerVerifier>(identity_.job, server,
                                                        /*optional=*/false));
  return grpc::experimental::TlsCredentials(options);
}

absl::StatusOr<PeerIdentity> CallerOf(const grpc::AuthContext& context) {
  if (context.IsPeerAuthenticated()) {
    for (const grpc::string_ref& uri :
         context.FindPropertyValues(GRPC_PEER_SPIFFE_ID_PROPERTY_NAME)) {
      auto identity = ParsePeerIdentity({uri.data(), uri.size()});
      if (identity.ok()) return identity;
    }
  }
  return absl::UnauthenticatedError("no certificate of a peer");
}

}  // namespace tributary
