// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/certificate_authority.h"
#include "common/wire/identity/call_guard.h"
#include "common/wire/identity/caller_proof.h"
#include "common/wire/identity/peer_credentials.h"

namespace tributary {

// The options about access, which every program has.
struct AccessOptions {
  // A folder with ca.crt, tls.crt and tls.key; with a token ca.crt is enough
  // for a process that only calls. "-": standard input has an AccessBundle.
  // Empty: clear text.
  std::string tls;
  std::string token_file;  // empty: no token
  bool insecure = false;   // allows clear text to other machines
  // The same only for groups of workers, whose transports know no TLS.
  bool insecure_groups = false;
};

// The secrets of a process that its parent started, as one line of JSON on
// standard input, where neither the list of processes nor the environment
// shows them.
struct AccessBundle {
  std::string authority;  // PEM
  Credential own;
  std::string token;       // may be empty, as may page_token
  std::string page_token;  // PageAccess::token

  std::string ToLine() const;
  static absl::StatusOr<AccessBundle> FromLine(absl::string_view line);
};

// How a process proves who it is, and what it asks of its callers.
class Access {
 public:
  Access() = default;  // clear text

  // Reads what the options name, for a process of one of these roles.
  // InvalidArgument: the certificate is of another role, the token is too short
  // or is given without TLS, or a file is not what it should be. NotFound: a
  // file is missing. FailedPrecondition: the certificate has expired, or is not
  // valid yet.
  static absl::StatusOr<Access> Read(const AccessOptions& options,
                                     const std::vector<PeerRole>& roles);
  static absl::StatusOr<Access> Read(const AccessOptions& options,
                                     PeerRole role) {
    return Read(options, std::vector<PeerRole>{role});
  }
  // InvalidArgument: a text is not what it should be. FailedPrecondition as
  // Read.
  static absl::StatusOr<Access> FromBundle(const AccessBundle& bundle);

  CallerProof Proof() const { return CallerProof(tls_, token_); }
  CallGuard::Options Guard() const { return {.tls = tls_, .token = token_}; }
  bool encrypted() const { return tls_ != nullptr; }
  const std::string& token() const { return token_; }
  bool insecure() const { return insecure_; }
  // The process's own certificate as it was read first; empty: none.
  const Credential& own() const { return own_; }
  // Returns a function that reads own() anew; null: it never changes.
  std::function<absl::StatusOr<Credential>()> renew() const;
  // Returns a function that tells when the current certificate expires; null:
  // there is no certificate.
  std::function<absl::StatusOr<absl::Time>()> certificate_end() const;
  // The token for this process's pages, if its parent gave one (AccessBundle).
  const std::string& page_token() const { return page_token_; }

  // InvalidArgument when a port there would be open, in clear text, to other
  // machines, and the command line does not say --insecure.
  absl::Status CheckListen(absl::string_view address) const;
  // The same for a port that is always in clear text: that of a group of
  // workers or of a speed test. FailedPrecondition if it is open to other
  // machines, unless the command line says --insecure-groups or --insecure.
  absl::Status CheckListenInClear(absl::string_view address) const;

 private:
  std::shared_ptr<const PeerCredentials> tls_;  // null: clear text
  std::string token_;
  std::string page_token_;
  Credential own_;
  std::string own_folder_;  // empty: from no folder
  bool insecure_ = false;
  bool insecure_groups_ = false;
};

// Reads a secret from a file, without the white space around it.
// InvalidArgument: it has fewer than 32 characters, or one that is not a
// visible character of ASCII. Other errors are those of the file system.
absl::StatusOr<std::string> ReadToken(const std::string& path);

}  // namespace tributary
