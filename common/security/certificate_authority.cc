// SPDX-License-Identifier: Apache-2.0
#include "common/security/certificate_authority.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kCurve[] = "P-256";
constexpr char kNoCertificate[] = "wanted a certificate as PEM text";
constexpr char kNoAuthority[] =
    "the certificate is not that of a certificate authority";
constexpr char kAuthorityName[] = "Tributary certificate authority";
constexpr int kSerialBytes = 16;
constexpr size_t kLongestHost = 253;  // RFC 1035

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, FreeBio>;
struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

absl::Status OpenSslError(absl::string_view action) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_peek_last_error(), reason.data(), reason.size());
  ERR_clear_error();
  return absl::InternalError(
      absl::StrCat("OpenSSL could not ", action, ": ", reason.data()));
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);  // NOLINT(google-runtime-int)
  return {data, static_cast<size_t>(size)};
}

BioPtr Reader(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<Credential> Written(X509* certificate, EVP_PKEY* key) {
  const BioPtr first(BIO_new(BIO_s_mem())), second(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(first.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(second.get(), key, nullptr, nullptr, 0,
                                    nullptr, nullptr) != 1) {
    return OpenSslError("write a certificate");
  }
  return Credential{Contents(first.get()), Contents(second.get())};
}

// `text` is as in openssl.cnf, and must not contain unchecked foreign text.
bool AddExtension(X509* certificate, X509* issuer, int id,
                  const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, &context, id, text.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool SetTimes(X509* certificate, absl::Time from, absl::Time until) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(from)) !=
             nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(until)) !=
             nullptr;
}

// A random positive number: the authority keeps no count (RFC 5280, 4.1.2.2).
bool SetSerial(X509* certificate) {
  std::array<unsigned char, kSerialBytes> bytes;
  if (RAND_bytes(bytes.data(), kSerialBytes) != 1) return false;
  bytes[0] &= 0x7f;
  BIGNUM* const number = BN_bin2bn(bytes.data(), kSerialBytes, nullptr);
  const bool set =
      number != nullptr &&
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

bool SetName(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(
             name, "CN", MBSTRING_UTF8,
             reinterpret_cast<const unsigned char*>(text.data()),
             static_cast<int>(text.size()), -1, 0) == 1;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return absl::InfinitePast();
  return absl::FromTM(fields, absl::UTCTimeZone());
}

absl::Time EndOf(const X509* certificate) {
  return TimeOf(X509_get0_notAfter(certificate));
}

bool IsAddress(const std::string& host) {
  in6_addr unused;
  return inet_pton(AF_INET, host.c_str(), &unused) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &unused) == 1;
}

struct Pair {
  X509Ptr certificate;
  KeyPtr key;
};

absl::StatusOr<Pair> ReadPair(const Credential& credential) {
  const BioPtr certificate = Reader(credential.certificate);
  const BioPtr key = Reader(credential.key);
  // The empty password keeps OpenSSL from asking for one on the terminal.
  char no_password[] = "";
  Pair pair;
  pair.certificate.reset(
      PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
  pair.key.reset(
      PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, no_password));
  const bool match =
      pair.certificate != nullptr && pair.key != nullptr &&
      X509_check_private_key(pair.certificate.get(), pair.key.get()) == 1;
  ERR_clear_error();
  if (pair.certificate == nullptr) {
    return absl::InvalidArgumentError(kNoCertificate);
  }
  if (pair.key == nullptr) {
    return absl::InvalidArgumentError(
        "wanted a private key as PEM text, without a password");
  }
  if (!match) {
    return absl::InvalidArgumentError(
        "the private key belongs to another certificate");
  }
  return pair;
}

absl::StatusOr<PeerIdentity> IdentityIn(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    auto identity = ParsePeerIdentity(
        {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
         static_cast<size_t>(ASN1_STRING_length(uri))});
    if (identity.ok()) return identity;
  }
  return absl::InvalidArgumentError(
      "the certificate has no identity of Tributary");
}

absl::StatusOr<std::string> AlternativeNames(
    const CertificateSubject& subject) {
  if (!subject.identity.job.empty()) {
    TRIBUTARY_RETURN_IF_ERROR(CheckJobInIdentity(subject.identity.job));
  }
  std::vector<std::string> names = {
      absl::StrCat("URI:", subject.identity.Uri())};
  for (const std::string& host : subject.hosts) {
    const auto fits = [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
             c == '.' || c == '*';
    };
    if (IsAddress(host)) {
      names.push_back(absl::StrCat("IP:", host));
    } else if (!host.empty() && host.size() <= kLongestHost &&
               std::all_of(host.begin(), host.end(), fits)) {
      names.push_back(absl::StrCat("DNS:", host));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "wanted a host's name or IP address, got ", Quoted(host)));
    }
  }
  return absl::StrJoin(names, ",");
}

}  // namespace

void FreeOpenSsl::operator()(X509* certificate) const {
  X509_free(certificate);
}
void FreeOpenSsl::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

CertificateAuthority::CertificateAuthority(X509Ptr certificate, KeyPtr key)
    : certificate_(std::move(certificate)), key_(std::move(key)) {}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Create(
    const Validity& validity) {
  KeyPtr key(EVP_EC_gen(kCurve));
  X509Ptr certificate(X509_new());
  X509* const x509 = certificate.get();
  if (key == nullptr || x509 == nullptr ||
      X509_set_version(x509, X509_VERSION_3) != 1 || !SetSerial(x509) ||
      !SetTimes(x509, validity.from, validity.from + validity.duration) ||
      !SetName(X509_get_subject_name(x509), kAuthorityName) ||
      X509_set_issuer_name(x509, X509_get_subject_name(x509)) != 1 ||
      X509_set_pubkey(x509, key.get()) != 1 ||
      // The authority signs no further authorities.
      !AddExtension(x509, x509, NID_basic_constraints,
                    "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(x509, x509, NID_key_usage, "critical,keyCertSign") ||
      !AddExtension(x509, x509, NID_subject_key_identifier, "hash") ||
      X509_sign(x509, key.get(), EVP_sha256()) == 0) {
    return OpenSslError("make a certificate authority");
  }
  return CertificateAuthority(std::move(certificate), std::move(key));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Read(
    const Credential& credential) {
  TRIBUTARY_ASSIGN_OR_RETURN(Pair pair, ReadPair(credential));
  if (X509_check_ca(pair.certificate.get()) != 1) {
    return absl::InvalidArgumentError(kNoAuthority);
  }
  return CertificateAuthority(std::move(pair.certificate), std::move(pair.key));
}

absl::StatusOr<Credential> CertificateAuthority::Issue(
    const CertificateSubject& subject, const Validity& validity) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string names,
                             AlternativeNames(subject));
  const absl::Time until =
      std::min(validity.from + validity.duration, valid_until());
  if (until <= validity.from) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the certificate authority's own certificate is valid until ",
        absl::FormatTime(valid_until(), absl::UTCTimeZone())));
  }
  const KeyPtr key(EVP_EC_gen(kCurve));
  const X509Ptr owned(X509_new());
  X509* const x509 = owned.get();
  X509* const issuer = certificate_.get();
  if (key == nullptr || x509 == nullptr ||
      X509_set_version(x509, X509_VERSION_3) != 1 || !SetSerial(x509) ||
      !SetTimes(x509, validity.from, until) ||
      !SetName(
          X509_get_subject_name(x509),
          absl::StrCat("tributary ", PeerRoleName(subject.identity.role))) ||
      X509_set_issuer_name(x509, X509_get_subject_name(issuer)) != 1 ||
      X509_set_pubkey(x509, key.get()) != 1 ||
      !AddExtension(x509, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(x509, issuer, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(x509, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !AddExtension(x509, issuer, NID_subject_alt_name, names) ||
      !AddExtension(x509, issuer, NID_authority_key_identifier, "keyid") ||
      X509_sign(x509, key_.get(), EVP_sha256()) == 0) {
    return OpenSslError("make a certificate");
  }
  return Written(x509, key.get());
}

absl::StatusOr<Credential> CertificateAuthority::ToPem() const {
  return Written(certificate_.get(), key_.get());
}

absl::Time CertificateAuthority::valid_until() const {
  return EndOf(certificate_.get());
}

absl::StatusOr<CertificateFacts> ReadCertificate(const std::string& pem) {
  const BioPtr bio = Reader(pem);
  const X509Ptr x509(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (x509 == nullptr) return absl::InvalidArgumentError(kNoCertificate);
  CertificateFacts facts;
  facts.valid_from = TimeOf(X509_get0_notBefore(x509.get()));
  facts.valid_until = EndOf(x509.get());
  TRIBUTARY_ASSIGN_OR_RETURN(facts.identity, IdentityIn(x509.get()));
  return facts;
}

std::string WhyNotValid(const CertificateFacts& facts, absl::Time now) {
  const auto at = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
  };
  if (now > facts.valid_until) {
    return absl::StrCat("expired at ", at(facts.valid_until));
  }
  if (now >= facts.valid_from) return "";
  return absl::StrCat("is valid from ", at(facts.valid_from),
                      " on, and this machine's clock says ", at(now));
}

absl::StatusOr<CertificateFacts> ReadCredential(const Credential& credential) {
  TRIBUTARY_RETURN_IF_ERROR(ReadPair(credential).status());
  return ReadCertificate(credential.certificate);
}

absl::Status CheckAuthority(const std::string& pem) {
  const BioPtr bio = Reader(pem);
  for (int found = 0;; ++found) {
    const X509Ptr x509(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    ERR_clear_error();
    if (x509 == nullptr && found > 0) return absl::OkStatus();
    if (x509 == nullptr) return absl::InvalidArgumentError(kNoCertificate);
    if (X509_check_ca(x509.get()) != 1) {
      return absl::InvalidArgumentError(kNoAuthority);
    }
  }
}

}  // namespace tributary
