// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/identity.h"

// OpenSSL's types, so that its headers stay out of this one.
struct evp_pkey_st;
struct x509_st;

namespace tributary {

// Owners of OpenSSL's objects.
struct FreeOpenSsl {
  void operator()(x509_st* certificate) const;
  void operator()(evp_pkey_st* key) const;
};
using X509Ptr = std::unique_ptr<x509_st, FreeOpenSsl>;
using KeyPtr = std::unique_ptr<evp_pkey_st, FreeOpenSsl>;

// A certificate and the key that belongs to it, as PEM text (RFC 7468).
struct Credential {
  std::string certificate;
  std::string key;  // secret
};

// The holder of a certificate.
struct CertificateSubject {
  PeerIdentity identity;
  // DNS names and IP addresses at which the holder is reached, for clients that
  // compare them with the address they connect to; may be empty.
  std::vector<std::string> hosts;
};

// Issues the certificates of a deployment: X.509 version 3 (RFC 5280), keys on
// the curve P-256, signatures with SHA-256.
//
// Errors of OpenSSL are Internal.
class CertificateAuthority {
 public:
  struct Validity {
    absl::Time from;
    absl::Duration duration;
  };

  // Makes a new authority with a new key.
  static absl::StatusOr<CertificateAuthority> Create(const Validity& validity);
  // InvalidArgument: no PEM, the key belongs to another certificate, or the
  // certificate is not that of an authority.
  static absl::StatusOr<CertificateAuthority> Read(
      const Credential& credential);

  // Makes a new key and its certificate. `validity` is cut at the end of the
  // authority's own certificate. InvalidArgument: the job's name or a host
  // cannot be in a certificate, or the authority's own has ended by then.
  absl::StatusOr<Credential> Issue(const CertificateSubject& subject,
                                   const Validity& validity) const;

  // The authority's own certificate and key, as Read takes them.
  absl::StatusOr<Credential> ToPem() const;
  // The end of the authority's own certificate.
  absl::Time valid_until() const;

 private:
  CertificateAuthority(X509Ptr certificate, KeyPtr key);

  X509Ptr certificate_;
  KeyPtr key_;
};

// The content of a certificate.
struct CertificateFacts {
  PeerIdentity identity;  // of its holder
  absl::Time valid_from;
  absl::Time valid_until;
};

// Why peers refuse a certificate at this time, "expired at 2026-11-27 10:02:03
// UTC"; empty: it is valid.
std::string WhyNotValid(const CertificateFacts& facts, absl::Time now);

// InvalidArgument: no PEM, or a certificate without an identity of Tributary.
absl::StatusOr<CertificateFacts> ReadCertificate(const std::string& pem);
// InvalidArgument as well when the key belongs to another certificate.
absl::StatusOr<CertificateFacts> ReadCredential(const Credential& credential);

// InvalidArgument: no PEM, or certificates that are not those of authorities.
// There are several while one authority takes the place of another.
absl::Status CheckAuthority(const std::string& pem);

}  // namespace tributary
