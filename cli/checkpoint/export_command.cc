// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/jobs/run_outcome.h"
#include "cli/run/checkpoint_place.h"
#include "cli/run/job/job_run.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/console.h"
#include "cli/terminal/exit_codes.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/command_line/access_flags.h"
#include "common/job/files/output_guard.h"
#include "common/model_record/run_weights.h"
#include "common/status/status_macros.h"
#include "coordinator/run/export_tensors.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

constexpr char kExportDescription[] =
    "Writes the weights of a checkpoint as a safetensors file.";
constexpr char kExportFooter[] =
    "The tensors have the parameters' names, as in a run's\n"
    "weights.safetensors; with --optimizer-state, the optimizer's follow as\n"
    "optimizer.STATE.PARAMETER. Every byte that is read is checked, and the\n"
    "file appears when it is complete. The sha256 is that of summary.json.\n\n"
    "Examples:\n"
    "  tributary export run model.safetensors     # the best or newest one\n"
    "  tributary export run/checkpoints/step-000000000500 model.safetensors\n"
    "  tributary export run all.safetensors --optimizer-state\n\n"
    "Exit codes: 0 done, 1 the checkpoint is damaged or the file cannot be\n"
    "written, 2 there is no such checkpoint.";

struct ExportOptions {
  std::string checkpoint;
  std::string output;
  std::string key_file;
  bool optimizer_state = false;
  bool last = false;
};

// Returns the newest checkpoint at the path. For a run directory, this is the
// run's own last one, even if later runs that continued it share its checkpoint
// directory.
absl::StatusOr<std::string> LastOf(const std::string& path) {
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointPlace place,
                             FindCheckpoints(path));
  if (!place.is_directory) return CheckpointAt(path);
  const absl::StatusOr<RunOutcome> outcome = ReadRunOutcome(path);
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             ListCheckpoints(place.path));
  for (const CheckpointInfo& info : found) {
    const bool own = outcome.ok() && outcome->checkpoint_step > 0
                         ? info.step == outcome->checkpoint_step
                         : IsOfRun(path, place, info);
    if (!own) continue;
    if (info.complete()) return info.path;
    break;
  }
  return CheckpointAt(path);
}

// Returns the checkpoint whose weights are the weights of a run directory, as
// in WeightsOfRun: that of its best evaluation if the run has kept it, else the
// newest one.
absl::StatusOr<std::string> BestOrNewest(const std::string& path) {
  if (WeightsOfRun(path) != path + kBestWeightsFile) return LastOf(path);
  TRIBUTARY_ASSIGN_OR_RETURN(const RunOutcome outcome, ReadRunOutcome(path));
  TRIBUTARY_ASSIGN_OR_RETURN(const CheckpointPlace place,
                             FindCheckpoints(path));
  const std::string best =
      absl::StrCat(place.path, "/", CheckpointFolderName(outcome.best_step));
  if (ReadCheckpointInfo(best).complete()) return best;
  return absl::NotFoundError(absl::StrCat(
      best,
      ", the checkpoint of the best evaluation, is missing, incomplete or "
      "damaged; the best weights are in ",
      path, kBestWeightsFile, ", and --last exports the newest checkpoint"));
}

// InvalidArgument when the output would replace a file of the checkpoint, or of
// the run that CHECKPOINT names or lies in.
absl::Status CheckExport(const ExportOptions& options,
                         const std::string& checkpoint) {
  GuardedOutput output{.path = options.output,
                       .option = "OUTPUT",
                       .read = {options.key_file},
                       .runs = {options.checkpoint}};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoint, error)) {
    output.read.push_back(entry.path().string());
  }
  const fs::path folder = fs::weakly_canonical(checkpoint, error);
  const fs::path run = folder.parent_path().parent_path();
  if (fs::exists(run / "job.yaml", error)) output.runs.push_back(run.string());
  return CheckOutput(output);
}

int Export(const ExportOptions& options) {
  const auto fail = [](const absl::Status& status, int exit_code) {
    PrintError(status.message());
    return exit_code;
  };
  const auto key = ReadCheckpointKey(options.key_file);
  if (!key.ok()) return fail(key.status(), kExitRefused);
  const auto folder = options.last ? LastOf(options.checkpoint)
                                   : BestOrNewest(options.checkpoint);
  if (!folder.ok()) return fail(folder.status(), kExitRefused);
  if (const absl::Status kept = CheckExport(options, *folder); !kept.ok()) {
    return fail(kept, kExitRefused);
  }
  // A damaged checkpoint can be replaced by an earlier one that is whole.
  const auto damaged = [&](const absl::Status& status) {
    return fail(absl::IsDataLoss(status) ? NameOlder(status, *folder) : status,
                kExitFailed);
  };
  auto opened = CheckpointReader::Open(*folder, *key);
  if (!opened.ok()) return damaged(opened.status());
  const std::shared_ptr<const CheckpointReader> reader = *std::move(opened);
  const auto written =
      ExportTensors(reader, options.optimizer_state, options.output);
  if (!written.ok()) return damaged(written.status());
  printf("%s: %zu tensors of %s, step %lld\nweights sha256: %s\n",
         options.output.c_str(), written->tensors, folder->c_str(),
         static_cast<long long>(reader->manifest().step()),
         written->weights_sha256.c_str());
  return kExitDone;
}

}  // namespace

void AddExportCommand(CommandLine& program) {
  auto options = std::make_shared<ExportOptions>();
  CommandLine command = program.AddCommand("export", kExportDescription);
  command.SetFooter(kExportFooter);
  command
      .AddOption("CHECKPOINT", &options->checkpoint,
                 "a checkpoint, or a directory: its newest checkpoint, or\n"
                 "that of the best evaluation if the run has kept it")
      .Required();
  command.AddOption("OUTPUT", &options->output, "the file to write").Required();
  command.AddFlag("--optimizer-state", &options->optimizer_state,
                  "write the optimizer's tensors too");
  command.AddFlag("--last", &options->last,
                  "the newest checkpoint, although the run has kept that of\n"
                  "its best evaluation");
  AddCheckpointKeyFlag(command, &options->key_file);
  command.SetAction([options] { return Export(*options); });
}

}  // namespace tributary
