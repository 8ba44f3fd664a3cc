// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/find_job.h"
#include "cli/status/ask_job.h"
#include "cli/status/job_table.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/exit_codes.h"
#include "common/command_line/access_flags.h"

namespace tributary {
namespace {

constexpr absl::Duration kListTimeout = absl::Milliseconds(500);

constexpr char kListDescription[] = "Shows the jobs of yours that run here.";
constexpr char kListFooter[] =
    "Shows the jobs that `tributary train`, `tributary run` and\n"
    "tributary-coordinator of this user run. A job whose process was killed "
    "is\n"
    "shown once more, with what its run directory says. A coordinator with "
    "--tls\n"
    "answers only an operator's certificate: pass its folder with --tls, "
    "unless\n"
    "the run directory has one.\n\n"
    "Exit codes: 0, 2 the command line is wrong.";

// Says why a job that runs has not answered.
std::string SilenceOf(const KnownJob& known,
                      const absl::StatusOr<FoundJob>& job) {
  if (known.life == CoordinatorLife::kStopped) {
    return "its coordinator is stopped (SIGSTOP)";
  }
  if (!job.ok()) return std::string(job.status().message());
  if (const AskedWhy asked = WhyGone(*job, absl::OkStatus()); asked.over) {
    return asked.answer.sentence;
  }
  if (known.job.encrypted && !job->encrypted) {
    return "answers only with a certificate: tributary list --tls FOLDER";
  }
  return "its coordinator does not answer";
}

ListedJob Look(const KnownJob& known, const AccessOptions& access,
               const JobRegister& jobs) {
  ListedJob listed{.known = known};
  FoundJob found;
  found.known = known;
  if (known.gone()) {
    listed.state = AskWhy(found).answer.sentence;
    jobs.Drop(known.job);
    return listed;
  }
  const absl::StatusOr<FoundJob> job = ConnectJob(known, access);
  if (job.ok() && (job->encrypted || !known.job.encrypted)) {
    const auto status = AskStatus(*job, kListTimeout);
    if (status.ok()) listed.status = *status;
  }
  if (!listed.status) listed.state = SilenceOf(known, job);
  return listed;
}

struct ListOptions {
  AccessOptions access;
  bool json = false;
};

int ListJobs(const ListOptions& options) {
  const JobRegister jobs(JobRegisterFolder());
  std::vector<ListedJob> listed;
  for (const KnownJob& known : jobs.Read()) {
    listed.push_back(Look(known, options.access, jobs));
  }
  const int64_t now_micros =
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count();
  const std::string text =
      options.json ? JobListJson(listed) : JobTable(listed, now_micros);
  std::fputs(text.c_str(), stdout);
  return kExitDone;
}

}  // namespace

void AddListCommand(CommandLine& program) {
  auto options = std::make_shared<ListOptions>();
  CommandLine list = program.AddCommand("list", kListDescription);
  list.SetFooter(kListFooter);
  AddAccessFlags(list, &options->access);
  list.AddFlag("--json", &options->json, "as a JSON array");
  list.SetAction([options] { return ListJobs(*options); });
}

}  // namespace tributary
