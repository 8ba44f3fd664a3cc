// SPDX-License-Identifier: Apache-2.0
#include "cli/run/job/run_keys.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/command_line/page_access.h"
#include "common/files/atomic_file.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/peer_credentials.h"

namespace tributary {
namespace {

// The certificates begin early, because the clock of another host may be
// behind.
constexpr absl::Duration kBefore = absl::Hours(24);
// Longer than any run: the processes cannot get new certificates.
constexpr absl::Duration kValid = absl::Hours(400 * 24);

CertificateAuthority::Validity FromNow() {
  return {absl::Now() - kBefore, kBefore + kValid};
}

}  // namespace

absl::StatusOr<RunKeys> RunKeys::Create(std::string page_token) {
  TRIBUTARY_ASSIGN_OR_RETURN(CertificateAuthority authority,
                             CertificateAuthority::Create(FromNow()));
  TRIBUTARY_ASSIGN_OR_RETURN(Credential root, authority.ToPem());
  return RunKeys(std::move(authority), std::move(root.certificate),
                 std::move(page_token));
}

absl::StatusOr<AccessBundle> RunKeys::For(PeerRole role) const {
  AccessBundle bundle;
  bundle.authority = root_;
  bundle.page_token = page_token_;
  TRIBUTARY_ASSIGN_OR_RETURN(
      bundle.own, authority_.Issue({.identity = {.role = role}}, FromNow()));
  return bundle;
}

std::string RunKeys::Folder(const std::string& run_dir, PeerRole role) {
  return absl::StrCat(run_dir, "/tls/", PeerRoleName(role));
}

void RunKeys::Remove(const std::string& run_dir) {
  std::error_code error;
  std::filesystem::remove_all(absl::StrCat(run_dir, "/tls"), error);
}

void RunKeys::RemoveThoseOfGone(const JobRegister& jobs) {
  const std::vector<KnownJob> known = jobs.Read();
  for (const KnownJob& job : known) {
    const std::string& folder = job.job.run_directory;
    // Another process may have taken over the run.
    const bool in_use =
        std::any_of(known.begin(), known.end(), [&](const KnownJob& other) {
          return !other.gone() && other.job.run_directory == folder;
        });
    if (job.gone() && !folder.empty() && !in_use) Remove(folder);
  }
}

absl::StatusOr<std::string> RunKeys::Save(const std::string& run_dir,
                                          PeerRole role) const {
  TRIBUTARY_ASSIGN_OR_RETURN(const AccessBundle bundle, For(role));
  const std::string folder = Folder(run_dir, role);
  TRIBUTARY_RETURN_IF_ERROR(
      SaveCredential(folder, bundle.authority, bundle.own));
  return folder;
}

absl::StatusOr<RunAccess> MakeRunAccess(bool insecure,
                                        const TelemetryOptions& telemetry) {
  RunAccess access;
  if (insecure) {
    if (!telemetry.metrics_token_file.empty()) {
      return absl::InvalidArgumentError(
          "--metrics-token-file and --insecure exclude each other");
    }
    access.pages.insecure = true;
    access.pages.health_listen = telemetry.health_listen;
    TRIBUTARY_ASSIGN_OR_RETURN(
        access.coordinator,
        Access::Read({.insecure = true}, PeerRole::kCoordinator));
    return access;
  }
  std::string page_token;
  if (!telemetry.metrics_token_file.empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(page_token,
                               ReadToken(telemetry.metrics_token_file));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(RunKeys keys,
                             RunKeys::Create(std::move(page_token)));
  TRIBUTARY_ASSIGN_OR_RETURN(const AccessBundle own,
                             keys.For(PeerRole::kCoordinator));
  TRIBUTARY_ASSIGN_OR_RETURN(access.coordinator, Access::FromBundle(own));
  TRIBUTARY_ASSIGN_OR_RETURN(access.pages,
                             ReadPageAccess(telemetry, access.coordinator));
  access.keys = std::make_shared<const RunKeys>(std::move(keys));
  return access;
}

absl::Status SaveSecret(const std::string& path, const std::string& text) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  std::error_code error;
  if (std::filesystem::create_directories(folder, error)) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all,
                                 error);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat(folder.string()));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                             AtomicFile::Create(path, /*mode=*/0600));
  TRIBUTARY_RETURN_IF_ERROR(file->Append(text));
  return file->Commit();
}

absl::Status SaveCredential(const std::string& folder,
                            const std::string& authority,
                            const Credential& credential) {
  const auto path = [&folder](const char* name) {
    return absl::StrCat(folder, "/", name);
  };
  TRIBUTARY_RETURN_IF_ERROR(
      SaveSecret(path(PeerCredentials::kAuthorityFile), authority));
  TRIBUTARY_RETURN_IF_ERROR(
      SaveSecret(path(PeerCredentials::kKeyFile), credential.key));
  return SaveSecret(path(PeerCredentials::kCertificateFile),
                    credential.certificate);
}

}  // namespace tributary
