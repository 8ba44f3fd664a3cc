// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs/find_job.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/command_line/access_flags.h"
#include "common/host/address.h"
#include "common/host/small_file.h"
#include "common/security/identity.h"
#include "common/status/nearest_name.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_lock.h"

namespace tributary {
namespace fs = std::filesystem;
namespace {

// "digits (runs/digits, coordinator 127.0.0.1:4000)"
std::string Named(const KnownJob& known) {
  return absl::StrCat(known.job.name, " (",
                      known.job.run_directory.empty()
                          ? ""
                          : absl::StrCat(known.job.run_directory, ", "),
                      "coordinator ", known.job.coordinator, ")");
}

absl::Status Ambiguous(absl::string_view what,
                       const std::vector<KnownJob>& jobs) {
  std::vector<std::string> names;
  for (const KnownJob& known : jobs) names.push_back(Named(known));
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", absl::StrJoin(names, ", "),
                   "; name a run directory, or --coordinator"));
}

// The operator's certificate and key in a run directory (RunKeys::Save).
std::string OperatorFolder(const std::string& run_directory) {
  return absl::StrCat(run_directory, "/tls/",
                      PeerRoleName(PeerRole::kOperator));
}

// Returns the address at which this process reaches a coordinator that listens
// on all addresses of its host.
std::string AddressToCall(const KnownJob& known) {
  const std::string& address = known.job.coordinator;
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (colon == std::string::npos || (host != "0.0.0.0" && host != "[::]") ||
      known.job.host.empty()) {
    return address;
  }
  const bool here = known.life != CoordinatorLife::kElsewhere;
  const std::string reachable = !here            ? known.job.host
                                : host == "[::]" ? "[::1]"
                                                 : "127.0.0.1";
  return reachable + address.substr(colon);
}

// Returns the job that runs; if none does, the newest one.
absl::StatusOr<std::optional<KnownJob>> TheOne(
    absl::string_view what, const std::vector<KnownJob>& fitting) {
  std::vector<KnownJob> living;
  std::copy_if(fitting.begin(), fitting.end(), std::back_inserter(living),
               [](const KnownJob& known) { return !known.gone(); });
  if (living.size() > 1) return Ambiguous(what, living);
  return living.empty() ? fitting.back() : living.front();
}

}  // namespace

void AddJobChoice(CommandLine& command, JobChoice* choice) {
  command.AddOption("JOB", &choice->job,
                    "a run directory or the name of a running job; by "
                    "default the\nonly job of yours that runs here");
  command.AddOption("--coordinator", &choice->coordinator,
                    "HOST:PORT of the job's coordinator, instead of JOB");
  AddAccessFlags(command, &choice->access);
}

std::string FoundJob::Title() const {
  if (known.job.name.empty()) {
    return known.job.run_directory.empty()
               ? absl::StrCat("the job at ", known.job.coordinator)
               : known.job.run_directory;
  }
  return known.job.run_directory.empty()
             ? known.job.name
             : absl::StrCat(known.job.name, " (", known.job.run_directory, ")");
}

// A person may have removed some of a run's files, even while it runs.
bool IsRunDirectory(const std::string& path) {
  if (path.empty()) return false;
  std::error_code error;
  for (const char* file :
       {"coordinator.lock", "coordinator.state", "coordinator.totals"}) {
    if (fs::is_regular_file(fs::path(path) / file, error)) return true;
  }
  int found = fs::is_directory(fs::path(path) / "logs", error) ? 1 : 0;
  for (const char* file : {"job.yaml", "summary.json", "metrics.jsonl",
                           "timeline.jsonl", "events.jsonl"}) {
    if (fs::is_regular_file(fs::path(path) / file, error)) ++found;
  }
  return found >= 2;
}

absl::StatusOr<KnownJob> JobOfRun(const std::string& run_directory,
                                  const std::vector<KnownJob>& jobs) {
  std::error_code error;
  const std::string path = fs::weakly_canonical(run_directory, error).string();
  const KnownJob* found = nullptr;
  for (const KnownJob& known : jobs) {
    if (known.job.run_directory != path) continue;
    if (found == nullptr || !known.gone()) found = &known;
  }
  if (found != nullptr) return *found;
  if (!IsRunDirectory(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(run_directory,
                     " is no run directory: it has neither coordinator.state "
                     "nor two other files of a run, such as job.yaml and "
                     "metrics.jsonl"));
  }
  KnownJob known;
  known.job.run_directory = path;
  known.life = CoordinatorLife::kGone;
  if (const auto holder = RunLock::ReadHolder(path)) {
    known.job.coordinator = holder->address;
    known.job.host = holder->host;
    known.job.pid = holder->pid;
    known.life = LookAtCoordinator(known.job);
  }
  return known;
}

absl::StatusOr<std::optional<KnownJob>> ChooseJob(
    const JobChoice& choice, const std::vector<KnownJob>& jobs) {
  if (!choice.coordinator.empty()) {
    for (const KnownJob& known : jobs) {
      if (known.job.coordinator == choice.coordinator && !known.gone()) {
        return known;
      }
    }
    return std::nullopt;
  }
  if (choice.job.empty()) {
    if (jobs.empty()) {
      return absl::NotFoundError(
          "no job of yours runs on this machine; name a run directory, or "
          "--coordinator HOST:PORT");
    }
    return TheOne("several jobs of yours run here", jobs);
  }
  std::vector<KnownJob> fitting;
  std::vector<std::string> names;
  for (const KnownJob& known : jobs) {
    names.push_back(known.job.name);
    if (known.job.name == choice.job) fitting.push_back(known);
  }
  if (!fitting.empty()) {
    return TheOne(absl::StrCat("several jobs are named ", Quoted(choice.job)),
                  fitting);
  }
  std::string remedy;
  if (CheckAddress(choice.job).ok()) {
    remedy = absl::StrCat("; for an address, give --coordinator ", choice.job);
  } else if (const std::string name = NearestName(choice.job, names);
             !name.empty()) {
    remedy = absl::StrCat("; did you mean ", name, "?");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(choice.job),
      " is neither a run directory nor the name of a job of yours that runs "
      "here",
      remedy));
}

absl::StatusOr<FoundJob> ConnectJob(KnownJob known,
                                    const AccessOptions& access) {
  FoundJob found;
  found.known = std::move(known);
  if (found.known.gone()) return found;
  AccessOptions used = access;
  if (used.tls.empty() && !found.run_directory().empty()) {
    const std::string own = OperatorFolder(found.run_directory());
    std::error_code error;
    if (fs::is_directory(own, error)) used.tls = own;
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const Access read,
                             Access::Read(used, PeerRole::kOperator));
  found.encrypted = read.encrypted();
  TRIBUTARY_ASSIGN_OR_RETURN(
      found.client,
      CoordinatorClient::Create(
          {.address = AddressToCall(found.known), .proof = read.Proof()}));
  return found;
}

absl::StatusOr<FoundJob> FindJob(const JobChoice& choice,
                                 const JobRegister& jobs) {
  if (!choice.job.empty() && !choice.coordinator.empty()) {
    return absl::InvalidArgumentError(
        "JOB and --coordinator both name a job; give one of them");
  }
  const std::vector<KnownJob> known = jobs.Read();
  if (IsRunDirectory(choice.job)) {
    TRIBUTARY_ASSIGN_OR_RETURN(KnownJob job, JobOfRun(choice.job, known));
    return ConnectJob(std::move(job), choice.access);
  }
  const bool is_name = std::any_of(
      known.begin(), known.end(),
      [&](const KnownJob& job) { return job.job.name == choice.job; });
  if (!is_name) TRIBUTARY_RETURN_IF_ERROR(CheckReadable(choice.job));
  TRIBUTARY_ASSIGN_OR_RETURN(std::optional<KnownJob> chosen,
                             ChooseJob(choice, known));
  if (chosen) return ConnectJob(*std::move(chosen), choice.access);
  KnownJob named;
  named.job.coordinator = choice.coordinator;
  return ConnectJob(std::move(named), choice.access);
}

}  // namespace tributary
