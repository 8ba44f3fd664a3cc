// SPDX-License-Identifier: Apache-2.0
#include "common/wire/identity/access.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/host/address.h"
#include "common/host/small_file.h"
#include "common/status/status_macros.h"
#include "nlohmann/json.hpp"

namespace tributary {
namespace {

constexpr char kStandardInput[] = "-";
constexpr size_t kShortestToken = 32;
constexpr size_t kMostTokenBytes = 64 << 10;  // of its file
// How often a process looks for newer certificates.
constexpr absl::Duration kReload = absl::Seconds(5);
constexpr size_t kLongestLine = 64 << 10;

std::string WithArticle(PeerRole role) {
  return absl::StrCat(role == PeerRole::kOperator ? "an " : "a ",
                      PeerRoleName(role));
}

absl::StatusOr<std::shared_ptr<const PeerCredentials>> ReadFolder(
    const AccessOptions& options, const std::vector<PeerRole>& roles) {
  auto whole = PeerCredentials::FromFolder(options.tls, kReload);
  if (!whole.ok() && absl::IsNotFound(whole.status()) &&
      !options.token_file.empty() && roles[0] != PeerRole::kCoordinator &&
      roles[0] != PeerRole::kServer) {
    return PeerCredentials::AuthorityFromFolder(options.tls, kReload);
  }
  TRIBUTARY_RETURN_IF_ERROR(whole.status());
  const PeerRole own = (*whole)->identity().role;
  if (std::find(roles.begin(), roles.end(), own) == roles.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.tls, "/", PeerCredentials::kCertificateFile,
                     " is the certificate of ", WithArticle(own),
                     ", wanted one of ", WithArticle(roles[0])));
  }
  TRIBUTARY_RETURN_IF_ERROR((*whole)->CheckOwnDates());
  return whole;
}

absl::StatusOr<Credential> ReadCredentialOf(const std::string& folder) {
  Credential own;
  for (const auto& [name, text] :
       {std::pair<const char*, std::string*>{PeerCredentials::kCertificateFile,
                                             &own.certificate},
        {PeerCredentials::kKeyFile, &own.key}}) {
    const std::string path = absl::StrCat(folder, "/", name);
    TRIBUTARY_ASSIGN_OR_RETURN(*text, ReadSmallFile(path, kMostPemBytes));
  }
  return own;
}

// Reads one line and no byte more, because the rest may be for the program.
std::string ReadLine(std::istream& input) {
  std::string line;
  for (char c = 0; line.size() < kLongestLine && input.get(c) && c != '\n';) {
    line.push_back(c);
  }
  return line;
}

}  // namespace

std::string AccessBundle::ToLine() const {
  return nlohmann::json{{"authority", authority},
                        {"certificate", own.certificate},
                        {"key", own.key},
                        {"token", token},
                        {"page_token", page_token}}
             .dump() +
         "\n";
}

absl::StatusOr<AccessBundle> AccessBundle::FromLine(absl::string_view line) {
  const nlohmann::json json =
      nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  AccessBundle bundle;
  bool whole = json.is_object();
  for (const auto& [name, text] :
       {std::pair<const char*, std::string*>{"authority", &bundle.authority},
        {"certificate", &bundle.own.certificate},
        {"key", &bundle.own.key},
        {"token", &bundle.token},
        {"page_token", &bundle.page_token}}) {
    whole = whole && json.contains(name) && json[name].is_string();
    if (whole) *text = json[name].get<std::string>();
  }
  if (!whole) {
    return absl::InvalidArgumentError(
        "--tls -: standard input has no line with authority, certificate, "
        "key, token and page_token");
  }
  return bundle;
}

absl::StatusOr<Access> Access::FromBundle(const AccessBundle& bundle) {
  Access access;
  TRIBUTARY_ASSIGN_OR_RETURN(
      access.tls_, PeerCredentials::FromPem(bundle.authority, bundle.own));
  const absl::Status dates = access.tls_->CheckOwnDates();
  if (!dates.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--tls -: ", dates.message(),
        "; if this machine's clock is right, start the job again, which makes "
        "new certificates, or write a newer one to standard input"));
  }
  access.token_ = bundle.token;
  access.page_token_ = bundle.page_token;
  access.own_ = bundle.own;
  return access;
}

absl::StatusOr<Access> Access::Read(const AccessOptions& options,
                                    const std::vector<PeerRole>& roles) {
  Access access;
  if (options.tls == kStandardInput) {
    TRIBUTARY_ASSIGN_OR_RETURN(const AccessBundle bundle,
                               AccessBundle::FromLine(ReadLine(std::cin)));
    TRIBUTARY_ASSIGN_OR_RETURN(access, FromBundle(bundle));
  } else if (!options.tls.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(access.tls_, ReadFolder(options, roles));
    if (access.tls_->has_certificate()) {
      TRIBUTARY_ASSIGN_OR_RETURN(access.own_, ReadCredentialOf(options.tls));
      access.own_folder_ = options.tls;
    }
  }
  access.insecure_ = options.insecure;
  access.insecure_groups_ = options.insecure_groups;
  if (options.token_file.empty()) return access;
  if (access.tls_ == nullptr) {
    return absl::InvalidArgumentError(
        "--token-file wants --tls, because others could read the token in "
        "clear text");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(access.token_, ReadToken(options.token_file));
  return access;
}

std::function<absl::StatusOr<Credential>()> Access::renew() const {
  if (own_folder_.empty()) return nullptr;
  return [folder = own_folder_] { return ReadCredentialOf(folder); };
}

std::function<absl::StatusOr<absl::Time>()> Access::certificate_end() const {
  if (tls_ == nullptr || !tls_->has_certificate()) return nullptr;
  return [tls = tls_]() -> absl::StatusOr<absl::Time> {
    TRIBUTARY_ASSIGN_OR_RETURN(const CertificateFacts facts, tls->OwnFacts());
    return facts.valid_until;
  };
}

absl::Status Access::CheckListen(absl::string_view address) const {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(address));
  if (encrypted() || insecure_ || IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      address,
      " is open to other machines: give --tls FOLDER, which "
      "`tributary certificates` makes, or --insecure for clear text"));
}

absl::Status Access::CheckListenInClear(absl::string_view address) const {
  TRIBUTARY_RETURN_IF_ERROR(CheckAddress(address));
  if (insecure_ || insecure_groups_ || IsLoopback(address)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      HostOf(address),
      " is open to other machines, and the ports of groups of workers and of "
      "speed tests are in clear text: --insecure-groups allows it, for "
      "networks "
      "that nobody else reaches"));
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text,
                             ReadSmallFile(path, kMostTokenBytes));
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.size() < kShortestToken) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a token wants at least ", kShortestToken,
                     " characters, got ", token.size()));
  }
  for (const char c : token) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": a token has letters, digits and signs of ASCII alone"));
    }
  }
  return token;
}

}  // namespace tributary
