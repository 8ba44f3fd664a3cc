// SPDX-License-Identifier: Apache-2.0
#include "common/security/identity.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kTrustDomain[] = "spiffe://tributary/";
constexpr size_t kLongestJob = 128;

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

const std::vector<PeerRole>& AllPeerRoles() {
  static const auto* const roles = new std::vector<PeerRole>{
      PeerRole::kCoordinator, PeerRole::kServer, PeerRole::kWorker,
      PeerRole::kOperator, PeerRole::kMonitor};
  return *roles;
}

std::string PeerRoleName(PeerRole role) {
  switch (role) {
    case PeerRole::kCoordinator:
      return "coordinator";
    case PeerRole::kServer:
      return "server";
    case PeerRole::kWorker:
      return "worker";
    case PeerRole::kOperator:
      return "operator";
    case PeerRole::kMonitor:
      return "monitor";
  }
  return "unknown";
}

std::string PeerIdentity::Uri() const {
  return absl::StrCat(kTrustDomain, job, job.empty() ? "" : "/",
                      PeerRoleName(role));
}

absl::Status CheckJobInIdentity(absl::string_view job) {
  if (!job.empty() && job.size() <= kLongestJob &&
      std::all_of(job.begin(), job.end(), IsUnreserved)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a job in a certificate has 1 to ", kLongestJob,
      " letters, digits, \"-\", \"_\" and \".\", got ", Quoted(job)));
}

absl::StatusOr<PeerIdentity> ParsePeerIdentity(absl::string_view uri) {
  const auto unknown = [uri] {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(uri), " is not an identity of Tributary: wanted ",
                     kTrustDomain, "JOB/ROLE or ", kTrustDomain, "ROLE"));
  };
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kTrustDomain)) return unknown();
  PeerIdentity identity;
  if (const size_t slash = rest.find('/'); slash != absl::string_view::npos) {
    identity.job = std::string(rest.substr(0, slash));
    if (!CheckJobInIdentity(identity.job).ok()) return unknown();
    rest.remove_prefix(slash + 1);
  }
  for (PeerRole role : AllPeerRoles()) {
    if (rest != PeerRoleName(role)) continue;
    identity.role = role;
    return identity;
  }
  return unknown();
}

}  // namespace tributary
