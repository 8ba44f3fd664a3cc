// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/jobs/job_register.h"
#include "common/command_line/telemetry_options.h"
#include "common/security/certificate_authority.h"
#include "common/security/identity.h"
#include "common/telemetry/http_listener.h"
#include "common/wire/identity/access.h"

namespace tributary {

// The certificates of one run: an authority that exists only in this process,
// and the certificates that it issues to the run's processes and to the person
// who started the run.
class RunKeys {
 public:
  // page_token: for the processes' pages; empty: none.
  static absl::StatusOr<RunKeys> Create(std::string page_token);

  // Creates a new key and certificate of this role.
  absl::StatusOr<AccessBundle> For(PeerRole role) const;
  // Writes a new key and certificate of a role into the folder
  // RUN_DIR/tls/ROLE, which only this user can read, and returns its path.
  absl::StatusOr<std::string> Save(const std::string& run_dir,
                                   PeerRole role) const;

  // Removes what Save has written. Call it when nobody needs the keys any more.
  static void Remove(const std::string& run_dir);
  // Calls Remove for the registered runs whose process was killed before that.
  static void RemoveThoseOfGone(const JobRegister& jobs);
  // The folder that Save writes.
  static std::string Folder(const std::string& run_dir, PeerRole role);

 private:
  RunKeys(CertificateAuthority authority, std::string root,
          std::string page_token)
      : authority_(std::move(authority)),
        root_(std::move(root)),
        page_token_(std::move(page_token)) {}

  CertificateAuthority authority_;
  std::string root_;  // PEM
  std::string page_token_;
};

// The keys and access rules by which the processes of one run meet each other.
struct RunAccess {
  std::shared_ptr<const RunKeys> keys;  // null: in clear text
  Access coordinator;
  PageAccess pages;  // of the coordinator
};

// InvalidArgument: `insecure` with a token, or a file without a token.
absl::StatusOr<RunAccess> MakeRunAccess(bool insecure,
                                        const TelemetryOptions& telemetry);

// Writes a file with mode 0600 into a folder with mode 0700, which it creates.
// It replaces an earlier file atomically.
absl::Status SaveSecret(const std::string& path, const std::string& text);

// Writes ca.crt, tls.crt and tls.key into a folder with mode 0700. The files
// have mode 0600 and replace earlier ones, each of them atomically.
absl::Status SaveCredential(const std::string& folder,
                            const std::string& authority,
                            const Credential& credential);

}  // namespace tributary
