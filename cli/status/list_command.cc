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

namespace tributary {
namespace {

constexpr absl::Duration kListTimeout = absl::Milliseconds(500);

constexpr char kListDescription[] = "Shows the jobs of yours that run here.";
constexpr char kListFooter[] =
    "Shows the jobs that `tributary train`, `tributary run` and\n"
    "tributary-coordinator of this user run. A job whose process was killed "
    "is\n"
    "shown once more, with what its run directory says.\n\n"
    "Exit codes: 0, 2 the command line is wrong.";

ListedJob Look(const KnownJob& known, const JobRegister& jobs) {
  ListedJob listed{.known = known};
  FoundJob found;
  found.known = known;
  if (known.gone()) {
    listed.state = AskWhy(found).answer.sentence;
    jobs.Drop(known.job);
    return listed;
  }
  const absl::StatusOr<FoundJob> job = ConnectJob(known);
  const absl::StatusOr<v1::JobStatusResponse> status =
      job.ok() ? AskStatus(*job, kListTimeout)
               : absl::StatusOr<v1::JobStatusResponse>(job.status());
  if (status.ok()) {
    listed.status = *status;
  } else {
    listed.state = known.life == CoordinatorLife::kStopped
                       ? "its coordinator is stopped (SIGSTOP)"
                       : "its coordinator does not answer";
  }
  return listed;
}

int ListJobs(bool json) {
  const JobRegister jobs(JobRegisterFolder());
  std::vector<ListedJob> listed;
  for (const KnownJob& known : jobs.Read()) listed.push_back(Look(known, jobs));
  const int64_t now_micros =
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count();
  const std::string text =
      json ? JobListJson(listed) : JobTable(listed, now_micros);
  std::fputs(text.c_str(), stdout);
  return kExitDone;
}

}  // namespace

void AddListCommand(CommandLine& program) {
  auto json = std::make_shared<bool>(false);
  CommandLine list = program.AddCommand("list", kListDescription);
  list.SetFooter(kListFooter);
  list.AddFlag("--json", json.get(), "as a JSON array");
  list.SetAction([json] { return ListJobs(*json); });
}

}  // namespace tributary
