// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/checkpoint/checkpoint_diff.h"
#include "cli/checkpoint/checkpoint_text.h"
#include "cli/run/checkpoint_place.h"
#include "cli/run/job/job_run.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/command_line/access_flags.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kCheckpointDescription[] =
    "Looks at checkpoints: which there are, whether they are intact, how two "
    "differ; or takes one.";
constexpr char kCheckpointFooter[] =
    "DIR is a directory of checkpoints or a run directory, whose checkpoints/\n"
    "is meant. No command changes a checkpoint.\n\n"
    "Examples:\n"
    "  tributary checkpoint list runs/digits-20260102-030405\n"
    "  tributary checkpoint verify runs/digits-20260102-030405\n"
    "  tributary checkpoint newest runs/digits-20260102-030405\n"
    "  tributary checkpoint diff run-a run-b\n"
    "  tributary checkpoint take runs/digits-20260102-030405\n"
    "`tributary checkpoint COMMAND --help` shows more.";

constexpr char kCheckpointListFooter[] =
    "The newest stands first. A folder without a valid manifest and all files\n"
    "is incomplete: it is being written, or was when its writer ended. What "
    "is\n"
    "in the files is not looked at; verify does that.\n\n"
    "Example:\n"
    "  tributary checkpoint list run\n\n"
    "Exit codes: 0 done, 2 there is no such directory.";

constexpr char kCheckpointVerifyFooter[] =
    "Reads every byte and compares it with its checksums. A damage is told\n"
    "with the file and the byte where its page begins. In a directory,\n"
    "folders without a manifest are passed over, as resuming passes over "
    "them.\n\n"
    "Examples:\n"
    "  tributary checkpoint verify run\n"
    "  tributary checkpoint verify run/checkpoints/step-000000000500\n\n"
    "Exit codes: 0 every checkpoint is intact, 1 one is damaged or there is\n"
    "none, 2 there is no such directory.";

constexpr char kCheckpointNewestFooter[] =
    "Reads every byte, from the newest on, and prints the path of the first\n"
    "intact checkpoint. Standard error says which ones are passed over, and\n"
    "why. With several directories it takes the first one that has an intact\n"
    "checkpoint. So a script can continue a job whose newest checkpoint is\n"
    "damaged.\n\n"
    "Examples:\n"
    "  tributary checkpoint newest run\n"
    "  tributary train --resume \"$(tributary checkpoint newest run)\"\n\n"
    "Exit codes: 0 done, 1 no checkpoint is intact.";

constexpr char kCheckpointDiffFooter[] =
    "A and B are checkpoints, or directories, whose newest is meant. For "
    "every\n"
    "tensor: how many elements have other bits, and over these the greatest\n"
    "|a - b| and |a - b| / max(|a|, |b|). Differences of job and number of\n"
    "servers are told and do not count: training goes on from the same.\n\n"
    "Examples:\n"
    "  tributary checkpoint diff run-a run-b\n"
    "  tributary checkpoint diff run/checkpoints/step-000000000500 \\\n"
    "      run/checkpoints/step-000000001000\n\n"
    "Exit codes, as diff has them: 0 equal, 1 different, 2 one of the two\n"
    "cannot be read.";

int RefuseCheckpoint(const absl::Status& status) {
  PrintError(status.message());
  return kExitRefused;
}

int PrintCheckpoints(const std::string& path) {
  const auto place = FindCheckpoints(path);
  if (!place.ok()) return RefuseCheckpoint(place.status());
  const auto checkpoints = CheckpointsAt(*place);
  if (!checkpoints.ok()) return RefuseCheckpoint(checkpoints.status());
  if (checkpoints->empty()) {
    printf("%s: no checkpoints\n", place->path.c_str());
  } else {
    printf("%s", ListText(*checkpoints).c_str());
  }
  return kExitDone;
}

// True for a checkpoint that is being written or was left incomplete. Such a
// checkpoint cannot count as damaged.
bool HasNoManifest(const CheckpointInfo& info) {
  return absl::IsNotFound(info.status) && info.manifest.files_size() == 0;
}

int Verify(const std::string& path, const std::string& key_file) {
  const auto key = ReadCheckpointKey(key_file);
  if (!key.ok()) return RefuseCheckpoint(key.status());
  const auto place = FindCheckpoints(path);
  if (!place.ok()) return RefuseCheckpoint(place.status());
  const auto checkpoints = CheckpointsAt(*place);
  if (!checkpoints.ok()) return RefuseCheckpoint(checkpoints.status());
  int whole = 0;
  int damaged = 0;
  for (const CheckpointInfo& info : *checkpoints) {
    if (place->is_directory && HasNoManifest(info)) {
      printf("%s: incomplete, passed over\n", info.path.c_str());
      continue;
    }
    TRIBUTARY_FAILPOINT("verify-before-read");
    const std::vector<FileReport> reports = VerifyCheckpoint(info.path, *key);
    const bool ok = IsWhole(reports);
    // A run that deletes a checkpoint removes the manifest first.
    if (!ok && place->is_directory && !HasManifest(info)) {
      printf("%s: removed meanwhile, passed over\n", info.path.c_str());
      continue;
    }
    printf("%s", VerifyText(info.path, reports).c_str());
    whole += ok;
    damaged += !ok;
  }
  if (whole + damaged == 0) {
    PrintError(absl::StrCat(place->path, ": holds no complete checkpoint"));
  }
  return damaged > 0 || whole == 0 ? kExitFailed : kExitDone;
}

int PrintNewest(const std::vector<std::string>& paths,
                const std::string& key_file) {
  const auto key = ReadCheckpointKey(key_file);
  if (!key.ok()) return RefuseCheckpoint(key.status());
  for (const std::string& path : paths) {
    std::vector<std::string> passed_over;
    const auto newest = NewestWholeAt(path, *key, &passed_over);
    for (const std::string& one : passed_over) PrintError(one);
    if (newest.ok()) {
      printf("%s\n", newest->c_str());
      return kExitDone;
    }
    PrintError(newest.status().message());
  }
  return kExitFailed;
}

absl::StatusOr<std::shared_ptr<const CheckpointReader>> OpenAt(
    const std::string& path) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::string folder, CheckpointAt(path));
  return CheckpointReader::Open(folder);
}

int Diff(const std::string& path_a, const std::string& path_b) {
  const auto a = OpenAt(path_a);
  if (!a.ok()) return RefuseCheckpoint(a.status());
  const auto b = OpenAt(path_b);
  if (!b.ok()) return RefuseCheckpoint(b.status());
  const auto difference = CompareCheckpoints(*a, *b);
  if (!difference.ok()) return RefuseCheckpoint(difference.status());
  printf("A: %s\nB: %s\n%s", (*a)->folder().c_str(), (*b)->folder().c_str(),
         DifferenceText(*difference).c_str());
  return difference->equal() ? 0 : 1;
}

}  // namespace

void AddCheckpointCommand(CommandLine& program) {
  auto paths = std::make_shared<std::array<std::string, 2>>();
  CommandLine checkpoint =
      program.AddCommand("checkpoint", kCheckpointDescription);
  checkpoint.SetFooter(kCheckpointFooter);

  CommandLine list =
      checkpoint.AddCommand("list", "Shows the checkpoints of a run.");
  list.SetFooter(kCheckpointListFooter);
  list.AddOption("DIR", &(*paths)[0], "run directory, or its checkpoints")
      .Required();
  list.SetAction([paths] { return PrintCheckpoints((*paths)[0]); });

  CommandLine verify = checkpoint.AddCommand(
      "verify", "Reads checkpoints to the end and says what is damaged.");
  verify.SetFooter(kCheckpointVerifyFooter);
  verify
      .AddOption("DIR", &(*paths)[0],
                 "run directory, its checkpoints, or one checkpoint")
      .Required();
  AddCheckpointKeyFlag(verify, &(*paths)[1]);
  verify.SetAction([paths] { return Verify((*paths)[0], (*paths)[1]); });

  auto directories = std::make_shared<std::vector<std::string>>();
  CommandLine newest = checkpoint.AddCommand(
      "newest", "Prints the path of the newest intact checkpoint.");
  newest.SetFooter(kCheckpointNewestFooter);
  newest
      .AddOption("DIR", directories.get(),
                 "run directories, or their checkpoints")
      .Required();
  AddCheckpointKeyFlag(newest, &(*paths)[1]);
  newest.SetAction(
      [directories, paths] { return PrintNewest(*directories, (*paths)[1]); });

  CommandLine diff =
      checkpoint.AddCommand("diff", "Says how two checkpoints differ.");
  diff.SetFooter(kCheckpointDiffFooter);
  diff.AddOption("A", &(*paths)[0], "checkpoint").Required();
  diff.AddOption("B", &(*paths)[1], "checkpoint").Required();
  diff.SetAction([paths] { return Diff((*paths)[0], (*paths)[1]); });

  AddCheckpointTakeCommand(checkpoint);
}

}  // namespace tributary
