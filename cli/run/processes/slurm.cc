// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/slurm.h"

#include <errno.h>
#include <stdio.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/run/processes/find_program.h"
#include "common/status/printable.h"
#include "common/status/shell_text.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr absl::string_view kSlurm = "slurm";

// --overlap: a step never waits for another step to give its cores back.
// Without it, a restarted server or worker would wait. --cpu-bind=none: the
// task may use all cores that the job has on the node, not only one.
constexpr absl::string_view kSrun =
    "srun --overlap --nodes=1 --ntasks=1 --nodelist={host} --cpu-bind=none "
    "--mpi=none";
constexpr absl::string_view kIgnoreSigterm =
    "sh -c 'trap \"\" TERM; exec \"$@\"' sh";

// Returns the output of a command, both streams. FailedPrecondition: it failed.
absl::StatusOr<std::string> OutputOf(const std::string& command) {
  FILE* const pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return absl::ErrnoToStatus(errno, command);
  std::string output;
  char piece[4096];
  while (const size_t bytes = fread(piece, 1, sizeof(piece), pipe)) {
    output.append(piece, bytes);
  }
  const int status = pclose(pipe);
  if (status == 0) return output;
  return absl::FailedPreconditionError(absl::StrCat(
      command,
      " failed: ", Printable(absl::StripTrailingAsciiWhitespace(output))));
}

}  // namespace

absl::StatusOr<std::vector<SlurmNode>> ParseSlurmNodes(absl::string_view text) {
  std::vector<SlurmNode> nodes;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    SlurmNode node;
    for (absl::string_view word : absl::StrSplit(line, ' ')) {
      if (absl::ConsumePrefix(&word, "NodeName=")) {
        node.name = std::string(word);
      } else if (absl::ConsumePrefix(&word, "NodeAddr=")) {
        node.address = std::string(word);
      }
    }
    if (node.name.empty()) continue;
    if (node.address.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("scontrol tells no NodeAddr of the node ", node.name));
    }
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("scontrol tells no node of the allocation, but \"",
                     Printable(text.substr(0, 200)), "\""));
  }
  return nodes;
}

absl::StatusOr<std::vector<SlurmNode>> AskSlurmNodes(
    const SlurmOptions& options) {
  if (options.node_list.empty()) {
    return absl::FailedPreconditionError(
        "--launch slurm: wanted an allocation of Slurm, that is, a run within "
        "sbatch or salloc; SLURM_JOB_NODELIST is not set");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string scontrol,
                             FindInPath("scontrol"));
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string text,
                             OutputOf(ShellText({scontrol, "--oneliner", "show",
                                                 "node", options.node_list})));
  return ParseSlurmNodes(text);
}

bool IsSlurmLaunch(absl::string_view launch) {
  return launch == kSlurm ||
         (absl::ConsumePrefix(&launch, kSlurm) && !launch.empty() &&
          absl::ascii_isspace(launch[0]));
}

std::string SlurmLauncher(absl::string_view launch) {
  absl::ConsumePrefix(&launch, kSlurm);
  return absl::StrCat(kSrun, launch, " ", kIgnoreSigterm);
}

}  // namespace tributary
