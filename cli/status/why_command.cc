// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/jobs/find_job.h"
#include "cli/status/ask_job.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/exit_codes.h"
#include "common/status/printable.h"

namespace tributary {
namespace {

constexpr char kWhyDescription[] =
    "Says in one sentence why a job does not advance, or that it does.";
constexpr char kWhyFooter[] =
    "Names the step, the process, since when, and the likely cause: a stopped\n"
    "or ended process, a silent host, a full disk, a slow link, a slow "
    "worker,\n"
    "a missing member, no coordinator. Looks at the processes of this host, "
    "so\n"
    "it knows most where they run.\n\n"
    "Examples:\n"
    "  tributary why                       # the only job of yours here\n"
    "  tributary why runs/digits\n"
    "  tributary why --coordinator 10.0.0.1:7070 --json\n\n"
    "Exit codes: 0 the job lives or is done, 1 it failed or cannot be "
    "reached,\n"
    "2 the command line is wrong.";

struct WhyOptions {
  JobChoice choice;
  bool json = false;
};

std::string WhyJson(const AskedWhy& asked) {
  using Json = nlohmann::ordered_json;
  Json json = {{"name", asked.name},
               {"cause", std::string(CauseWord(asked.answer.cause))},
               {"sentence", Printable(asked.answer.sentence)},
               {"step", asked.step},
               {"total_steps", asked.total_steps}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int Why(const WhyOptions& options) {
  const absl::StatusOr<FoundJob> job =
      FindJob(options.choice, JobRegister(JobRegisterFolder()));
  if (!job.ok()) return RefuseChoice(job.status());
  const AskedWhy asked = AskWhy(*job);
  const std::string text =
      options.json ? WhyJson(asked)
                   : Printable(absl::StrCat(
                         asked.name.empty() ? job->Title() : asked.name, " ",
                         asked.answer.sentence)) +
                         "\n";
  std::fputs(text.c_str(), stdout);
  return asked.well ? kExitDone : kExitFailed;
}

}  // namespace

void AddWhyCommand(CommandLine& program) {
  auto options = std::make_shared<WhyOptions>();
  CommandLine why = program.AddCommand("why", kWhyDescription);
  why.SetFooter(kWhyFooter);
  AddJobChoice(why, &options->choice);
  why.AddFlag("--json", &options->json,
              "as a JSON object, with the cause as one word");
  why.SetAction([options] { return Why(*options); });
}

}  // namespace tributary
