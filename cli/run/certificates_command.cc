// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/run/job/run_keys.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/host/private_files.h"
#include "common/host/small_file.h"
#include "common/security/certificate_authority.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/member_ticket.h"
#include "common/wire/identity/peer_credentials.h"

namespace tributary {
namespace {

constexpr char kCertificatesDescription[] =
    "Makes the certificates with which the processes of a job prove who they\n"
    "are, or renews them.";
constexpr char kCertificatesFooter[] =
    "OUT/ca is the authority; keep ca.key away from the hosts of the job.\n"
    "OUT/ROLE has the files ca.crt, tls.crt and tls.key of each role:\n"
    "coordinator, server, worker, operator (people: status, stop) and monitor\n"
    "(health and status). Give each process the folder of its role with "
    "--tls.\n"
    "A second call takes the authority that is there and writes new\n"
    "certificates. Running processes read them within seconds.\n\n"
    "Examples:\n"
    "  tributary certificates --out tls\n"
    "  tributary certificates --out tls --job digits --days 30\n"
    "  tributary certificates --out tls --token   # for a job without "
    "certificates\n"
    "                                             # on its workers\n\n"
    "Exit codes: 0 done, 1 a file cannot be written, 2 the command line is "
    "wrong.";

constexpr char kAuthorityKey[] = "ca.key";
constexpr int kAuthorityYears = 10;

struct CertificateOptions {
  std::string out;
  std::string job;
  std::vector<std::string> hosts;
  double days = 365;
  bool token = false;
};

absl::StatusOr<std::string> ReadText(const std::string& path) {
  return ReadSmallFile(path, kMostPemBytes);
}

// Returns the authority of OUT/ca. If there is none, creates one and writes it.
absl::StatusOr<CertificateAuthority> FindAuthority(const std::string& out) {
  const std::string folder = absl::StrCat(out, "/ca");
  const std::string certificate =
      absl::StrCat(folder, "/", PeerCredentials::kAuthorityFile);
  const std::string key = absl::StrCat(folder, "/", kAuthorityKey);
  std::error_code error;
  if (std::filesystem::exists(certificate, error)) {
    Credential own;
    TRIBUTARY_ASSIGN_OR_RETURN(own.certificate, ReadText(certificate));
    TRIBUTARY_ASSIGN_OR_RETURN(own.key, ReadText(key));
    auto authority = CertificateAuthority::Read(own);
    if (authority.ok()) return authority;
    return absl::Status(
        authority.status().code(),
        absl::StrCat(folder, ": ", authority.status().message()));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      CertificateAuthority authority,
      CertificateAuthority::Create({absl::Now() - absl::Hours(24),
                                    absl::Hours(24 * 365 * kAuthorityYears)}));
  TRIBUTARY_ASSIGN_OR_RETURN(const Credential own, authority.ToPem());
  TRIBUTARY_RETURN_IF_ERROR(SaveSecret(key, own.key));
  TRIBUTARY_RETURN_IF_ERROR(SaveSecret(certificate, own.certificate));
  return authority;
}

absl::Status MakeCertificates(const CertificateOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CertificateAuthority authority,
                             FindAuthority(options.out));
  TRIBUTARY_ASSIGN_OR_RETURN(const Credential root, authority.ToPem());
  const absl::Time now = absl::Now();
  const absl::Duration valid = absl::Hours(24) * options.days;
  for (const PeerRole role : AllPeerRoles()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        const Credential own,
        authority.Issue({{options.job, role}, options.hosts},
                        {now - absl::Hours(24), valid + absl::Hours(24)}));
    TRIBUTARY_RETURN_IF_ERROR(
        SaveCredential(absl::StrCat(options.out, "/", PeerRoleName(role)),
                       root.certificate, own));
  }
  const absl::Time until = std::min(now + valid, authority.valid_until());
  printf("%s: certificates for %s, valid until %s\n", options.out.c_str(),
         options.job.empty()
             ? "every job"
             : absl::StrCat("the job \"", options.job, "\"").c_str(),
         absl::FormatTime("%Y-%m-%d", until, absl::UTCTimeZone()).c_str());
  if (!options.token) return absl::OkStatus();
  const std::string path = absl::StrCat(options.out, "/token");
  TRIBUTARY_RETURN_IF_ERROR(SaveSecret(
      path, absl::StrCat(absl::WebSafeBase64Escape(NewJobKey()), "\n")));
  printf("%s: a token, for --token-file\n", path.c_str());
  return absl::OkStatus();
}

int RunCertificates(const CertificateOptions& options) {
  KeepFilesPrivate();
  if (!options.job.empty()) {
    if (const absl::Status name = CheckJobInIdentity(options.job); !name.ok()) {
      PrintError(absl::StrCat("--job: ", name.message()));
      return kExitRefused;
    }
  }
  const absl::Status status = MakeCertificates(options);
  if (status.ok()) return kExitDone;
  PrintError(status.message());
  return kExitFailed;
}

}  // namespace

void AddCertificatesCommand(CommandLine& program) {
  auto options = std::make_shared<CertificateOptions>();
  CommandLine certificates =
      program.AddCommand("certificates", kCertificatesDescription);
  certificates.SetFooter(kCertificatesFooter);
  certificates.AddOption("--out", &options->out, "folder for the files")
      .TypeName("FOLDER")
      .Required();
  certificates.AddOption("--job", &options->job,
                         "the job's name; default: for every job");
  certificates
      .AddOption("--host", &options->hosts,
                 "names and addresses of the hosts, for tools that compare\n"
                 "them, as browsers do with the status page")
      .Separator(',');
  certificates.AddOption("--days", &options->days, "how long they are valid")
      .ShowDefault()
      .Range(0.0001, 3650.0);
  certificates.AddFlag("--token", &options->token,
                       "write a token to OUT/token, too");
  certificates.SetAction([options] { return RunCertificates(*options); });
}

}  // namespace tributary
