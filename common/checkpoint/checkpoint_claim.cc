// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_claim.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/files/file_status.h"
#include "common/status/quoted.h"
#include "common/status/shell_text.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Creates the directories and syncs each to disk before its contents count.
absl::Status MakeFolders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error)) return absl::OkStatus();
  const std::string parent = fs::path(path).parent_path().string();
  if (!parent.empty() && parent != path) {
    TRIBUTARY_RETURN_IF_ERROR(MakeFolders(parent));
  }
  fs::create_directory(path, error);
  if (error) return FileError(path, "create", error.value());
  return SyncFolder(parent);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointClaim>> CheckpointClaim::Take(
    const std::string& directory) {
  TRIBUTARY_RETURN_IF_ERROR(MakeFolders(directory));
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) return FileError(directory, "open", errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint.directory ", directory,
        " belongs to a job that has not ended: end that one first, or give "
        "this job a folder of its own"));
  }
  return std::unique_ptr<CheckpointClaim>(new CheckpointClaim(std::move(fd)));
}

absl::Status CheckLineage(const std::string& directory, uint64_t lineage,
                          bool begins) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             ListCheckpoints(directory));
  for (const CheckpointInfo& info : found) {
    if (info.lineage == lineage || !HasManifest(info)) continue;
    if (info.lineage == 0 && !begins) continue;
    const std::string& name = info.manifest.name();
    return absl::FailedPreconditionError(absl::StrCat(
        "checkpoint.directory ", directory, " holds a checkpoint of step ",
        info.step, " of another job",
        name.empty() ? "" : absl::StrCat(", ", Quoted(name)), " (lineage ",
        info.lineage, "): give this job a folder of its own, or go on with ",
        "the other one: ",
        ShellText({"tributary", "train", "--resume", directory})));
  }
  return absl::OkStatus();
}

}  // namespace tributary
