// SPDX-License-Identifier: Apache-2.0
#include "common/job/files/output_guard.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/job/files/job_files.h"
#include "common/job/job_file.h"
#include "common/model_record/model_record.h"
#include "common/model_record/run_weights.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

// The files of a run directory, as docs/run-directory.md lists them.
constexpr absl::string_view kRunFiles[] = {"/job.yaml",
                                           "/metrics.jsonl",
                                           "/timeline.jsonl",
                                           "/trace.jsonl",
                                           "/events.jsonl",
                                           "/summary.json",
                                           "/prediction.json",
                                           "/prometheus-targets.json",
                                           kModelFile,
                                           "/environment.json",
                                           kLastWeightsFile,
                                           kBestWeightsFile,
                                           "/evaluations.jsonl",
                                           "/coordinator.state",
                                           "/coordinator.totals",
                                           "/coordinator.lock"};
constexpr absl::string_view kEventFiles = "events.out.tfevents.";
constexpr absl::string_view kRunFolders[] = {"/tls", "/logs", "/checkpoints"};
// The most levels from a file up to its run directory, as from
// checkpoints/step-1/FILE.
constexpr int kDeepest = 3;

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Whether both are one file, also through links.
bool IsSame(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

bool IsRun(const std::string& folder) {
  return Exists(folder + "/job.yaml") && Exists(folder + "/metrics.jsonl");
}

// Whether `wanted` holds for an entry of the folder. A folder that cannot be
// read counts as empty.
template <typename Iterator, typename Wanted>
bool AnyEntry(const std::string& folder, const Wanted& wanted) {
  std::error_code error;
  for (Iterator entry(folder, fs::directory_options::skip_permission_denied,
                      error);
       !error && entry != Iterator(); entry.increment(error)) {
    if (wanted(entry->path())) return true;
  }
  return false;
}

bool IsFileOfRun(const std::string& path, const std::string& run) {
  if (std::any_of(std::begin(kRunFiles), std::end(kRunFiles),
                  [&](absl::string_view file) {
                    return IsSame(absl::StrCat(run, file), path);
                  })) {
    return true;
  }
  const auto is_events = [](const fs::path& file) {
    return absl::StartsWith(file.filename().string(), kEventFiles);
  };
  if (AnyEntry<fs::directory_iterator>(run, [&](const fs::path& file) {
        return is_events(file) && IsSame(file.string(), path);
      })) {
    return true;
  }
  for (const absl::string_view folder : kRunFolders) {
    if (AnyEntry<fs::recursive_directory_iterator>(
            absl::StrCat(run, folder), [&](const fs::path& file) {
              return IsSame(file.string(), path);
            })) {
      return true;
    }
  }
  return false;
}

// Returns the files that the job of a run names; none if it cannot be read.
std::vector<std::string> FilesOfRunsJob(const std::string& run) {
  const auto job = ReadRecordedJob(run);
  return job.ok() ? FilesOfJob(*job) : std::vector<std::string>();
}

// Returns the runs that the command reads, and those that hold the output.
std::vector<std::string> RunsBeside(const GuardedOutput& output) {
  std::vector<std::string> runs = output.runs;
  std::error_code error;
  fs::path folder = fs::weakly_canonical(output.path, error);
  for (int depth = 0; depth < kDeepest; ++depth) {
    folder = folder.parent_path();
    if (IsRun(folder.string())) runs.push_back(folder.string());
  }
  return runs;
}

}  // namespace

absl::Status CheckOutput(const GuardedOutput& output) {
  std::error_code error;  // a file that is not there cannot be lost
  if (!fs::is_regular_file(output.path, error)) return absl::OkStatus();
  const auto refuse = [&output](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(output.path, " is ", what..., ", and would be lost: give ",
                     output.option, " another name"));
  };
  for (const std::string& read : output.read) {
    if (IsSame(read, output.path)) return refuse("one of the files to read");
  }
  for (const std::string& run : RunsBeside(output)) {
    if (IsFileOfRun(output.path, run)) {
      return refuse("a file of the run directory ", run);
    }
    for (const std::string& file : FilesOfRunsJob(run)) {
      if (!IsSame(file, output.path)) continue;
      return refuse("one of the files that ", run, "/job.yaml names");
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary
