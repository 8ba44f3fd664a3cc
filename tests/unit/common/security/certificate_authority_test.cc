// SPDX-License-Identifier: Apache-2.0
// Certificates are checked with OpenSSL's own verification.
#include "common/security/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace tributary {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kDay = absl::Hours(24);
const CertificateSubject kWorker = {{"digits", PeerRole::kWorker},
                                    {"node1.example", "10.0.0.1", "fd00::2"}};

struct Free {
  void operator()(X509* x509) const { X509_free(x509); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const {
    X509_STORE_CTX_free(context);
  }
};

std::unique_ptr<X509, Free> Parse(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  std::unique_ptr<X509, Free> x509(
      PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  BIO_free(bio);
  return x509;
}

// Why a client or a server refuses the certificate at that time; X509_V_OK if
// it accepts it.
int Verify(const std::string& certificate, const std::string& authority,
           absl::Time now, int purpose) {
  const auto leaf = Parse(certificate), root = Parse(authority);
  const std::unique_ptr<X509_STORE, Free> store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), root.get());
  const std::unique_ptr<X509_STORE_CTX, Free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr);
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_X509_STRICT);
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

class CertificateAuthorityTest : public ::testing::Test {
 protected:
  CertificateAuthorityTest()
      : authority_(CertificateAuthority::Create({kStart, 100 * kDay}).value()),
        root_(authority_.ToPem().value()) {}

  const CertificateAuthority authority_;
  const Credential root_;
};

TEST_F(CertificateAuthorityTest, ACertificateIsValidForBothEndsOfAConnection) {
  const auto issued = authority_.Issue(kWorker, {kStart, 10 * kDay});
  ASSERT_TRUE(issued.ok()) << issued.status();
  for (int purpose : {X509_PURPOSE_SSL_CLIENT, X509_PURPOSE_SSL_SERVER}) {
    EXPECT_EQ(
        Verify(issued->certificate, root_.certificate, kStart + kDay, purpose),
        X509_V_OK);
    EXPECT_EQ(
        Verify(issued->certificate, root_.certificate, kStart - kDay, purpose),
        X509_V_ERR_CERT_NOT_YET_VALID);
    EXPECT_EQ(Verify(issued->certificate, root_.certificate, kStart + 11 * kDay,
                     purpose),
              X509_V_ERR_CERT_HAS_EXPIRED);
  }
}

TEST_F(CertificateAuthorityTest, AnotherAuthoritysCertificateIsNotValid) {
  const auto other = CertificateAuthority::Create({kStart, 100 * kDay}).value();
  const auto issued = other.Issue(kWorker, {kStart, 10 * kDay}).value();
  EXPECT_NE(Verify(issued.certificate, root_.certificate, kStart + kDay,
                   X509_PURPOSE_SSL_CLIENT),
            X509_V_OK);
}

TEST_F(CertificateAuthorityTest, TheCertificateSaysWhoAndWhere) {
  const auto issued = authority_.Issue(kWorker, {kStart, 10 * kDay}).value();
  const auto facts = ReadCertificate(issued.certificate);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->identity, kWorker.identity);
  EXPECT_EQ(facts->valid_until, kStart + 10 * kDay);
  const auto x509 = Parse(issued.certificate);
  EXPECT_EQ(X509_check_host(x509.get(), "node1.example", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(x509.get(), "node2.example", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(x509.get(), "10.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(x509.get(), "fd00::2", 0), 1);
}

TEST_F(CertificateAuthorityTest, OutsideItsDatesItSaysWhy) {
  const auto issued = authority_.Issue(kWorker, {kStart, 10 * kDay}).value();
  const CertificateFacts facts = ReadCertificate(issued.certificate).value();
  EXPECT_EQ(facts.valid_from, kStart);
  EXPECT_EQ(WhyNotValid(facts, kStart), "");
  EXPECT_EQ(WhyNotValid(facts, kStart + 10 * kDay), "");
  const std::string end = absl::FormatTime(
      "%Y-%m-%d %H:%M:%S UTC", kStart + 10 * kDay, absl::UTCTimeZone());
  EXPECT_EQ(WhyNotValid(facts, kStart + 10 * kDay + absl::Seconds(1)),
            "expired at " + end);
  const std::string early = WhyNotValid(facts, kStart - absl::Seconds(1));
  EXPECT_EQ(early.find("is valid from "), 0u) << early;
}

TEST_F(CertificateAuthorityTest, ItDoesNotOutliveTheAuthority) {
  const auto late =
      authority_.Issue(kWorker, {kStart + 90 * kDay, 365 * kDay}).value();
  EXPECT_EQ(ReadCertificate(late.certificate)->valid_until,
            authority_.valid_until());
  const auto status =
      authority_.Issue(kWorker, {kStart + 100 * kDay, kDay}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is valid until 2027-"));
}

TEST_F(CertificateAuthorityTest, AnAuthorityThatIsReadAgainIssuesTheSame) {
  const auto again = CertificateAuthority::Read(root_);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto issued = again->Issue(kWorker, {kStart, kDay}).value();
  EXPECT_EQ(Verify(issued.certificate, root_.certificate, kStart,
                   X509_PURPOSE_SSL_SERVER),
            X509_V_OK);
}

TEST_F(CertificateAuthorityTest, WhatIsNoAuthorityIsRefused) {
  const auto leaf = authority_.Issue(kWorker, {kStart, kDay}).value();
  const auto error_of = [](const Credential& credential) {
    return std::string(
        CertificateAuthority::Read(credential).status().message());
  };
  EXPECT_THAT(error_of({"no PEM", root_.key}), HasSubstr("a certificate as"));
  EXPECT_THAT(error_of({root_.certificate, "no PEM"}),
              HasSubstr("a private key as PEM"));
  EXPECT_THAT(error_of({root_.certificate, leaf.key}),
              HasSubstr("belongs to another certificate"));
  EXPECT_THAT(error_of(leaf), HasSubstr("not that of a certificate authority"));
}

// Names are written into a text that OpenSSL parses, where a comma begins
// another name.
TEST_F(CertificateAuthorityTest, ANameThatWouldAddAnotherIsRefused) {
  for (const char* host : {"a,URI:spiffe://tributary/coordinator", "", "a b",
                           "a\nb", "a;b", "@section", "10.0.0.1:7070"}) {
    const auto status =
        authority_.Issue({{"", PeerRole::kWorker}, {host}}, {kStart, kDay})
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << host << ": " << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      authority_
          .Issue(
              {{"a,URI:spiffe://tributary/coordinator", PeerRole::kWorker}, {}},
              {kStart, kDay})
          .status()));
}

TEST_F(CertificateAuthorityTest, KeysAndNumbersAreNeverTheSame) {
  const auto a = authority_.Issue(kWorker, {kStart, kDay}).value();
  const auto b = authority_.Issue(kWorker, {kStart, kDay}).value();
  EXPECT_NE(a.key, b.key);
  const auto first = Parse(a.certificate), second = Parse(b.certificate);
  EXPECT_NE(ASN1_INTEGER_cmp(X509_get0_serialNumber(first.get()),
                             X509_get0_serialNumber(second.get())),
            0);
}

TEST(ReadCertificateTest, WhatSaysNobodyIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCertificate("no PEM").status()));
  const auto authority =
      CertificateAuthority::Create({kStart, 100 * kDay}).value();
  EXPECT_THAT(
      std::string(
          ReadCertificate(authority.ToPem()->certificate).status().message()),
      HasSubstr("no identity of Tributary"));
}

}  // namespace
}  // namespace tributary
