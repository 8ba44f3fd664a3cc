// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/checkpoint_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/checkpoint/files/shard_file.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_status.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

absl::Status RemoveManifest(const std::string& folder) {
  const std::string manifest = ManifestPath(folder);
  if (unlink(manifest.c_str()) == 0) return SyncFolder(folder);
  if (errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
  return FileError(manifest, "remove", errno);
}

// Removes the manifest first, so that the directory is not a checkpoint any
// more even if the rest fails.
absl::Status RemoveFolder(const std::string& folder) {
  TRIBUTARY_RETURN_IF_ERROR(RemoveManifest(folder));
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) return FileError(folder, "remove", error.value());
  return absl::OkStatus();
}

// Checks that every file that the manifest names exists with its size.
absl::Status CheckFiles(const std::string& folder,
                        const v1::CheckpointManifest& manifest) {
  for (const v1::CheckpointFile& file : FilesOf(manifest)) {
    const std::string path = absl::StrCat(folder, "/", file.name());
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return FileError(path, "open", errno);
    if (static_cast<uint64_t>(info.st_size) != file.bytes()) {
      return SizeError(path, info.st_size, file.bytes());
    }
  }
  return absl::OkStatus();
}

// Opens a server's or a rank's file.
absl::StatusOr<std::unique_ptr<ShardFile>> OpenAnyKind(
    const std::string& path) {
  auto file = ShardFile::Open(path);
  if (file.ok()) return file;
  return ShardFile::Open(path, Comparing::kNothing, PagedFileKind::kResidual);
}

// The lineage in the first readable file; 0: no file is readable.
uint64_t LineageOfFiles(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() != ".ckpt") continue;
    const auto file = OpenAnyKind(it->path().string());
    if (!file.ok()) continue;
    const ShardFileHeader& header = (*file)->header();
    return header.lineage != 0 ? header.lineage : header.job_id;
  }
  return 0;
}

absl::Status ReadInfo(CheckpointInfo* info) {
  absl::StatusOr<v1::CheckpointManifest> manifest = ReadManifest(info->path);
  if (!manifest.ok()) {
    info->lineage = LineageOfFiles(info->path);
    return manifest.status();
  }
  info->manifest = *std::move(manifest);
  info->lineage = LineageOf(info->manifest);
  info->step = info->manifest.step();
  for (const v1::CheckpointFile& file : FilesOf(info->manifest)) {
    info->bytes += static_cast<int64_t>(file.bytes());
  }
  return CheckFiles(info->path, info->manifest);
}

bool IsOf(const CheckpointInfo& info, uint64_t lineage) {
  return info.lineage == lineage || info.lineage == 0;
}

// Removes files that the manifest does not name and that are not being written.
// A process that has been replaced may have finished such a file afterwards.
absl::Status RemoveStrays(const CheckpointInfo& info,
                          const std::string& writer) {
  std::set<std::string> named = {
      fs::path(ManifestPath(info.path)).filename().string()};
  for (const v1::CheckpointFile& file : FilesOf(info.manifest)) {
    named.insert(file.name());
  }
  absl::Status first;
  std::error_code error;
  fs::directory_iterator it(info.path, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (named.count(name) > 0) continue;
    if (!writer.empty() && absl::StrContains(name, writer)) continue;
    std::error_code failed;
    if (fs::remove_all(it->path(), failed); failed) {
      first.Update(FileError(it->path().string(), "remove", failed.value()));
    }
  }
  return first;
}

absl::Status NoCheckpoint(const std::string& directory,
                          const std::vector<CheckpointInfo>& found) {
  return absl::NotFoundError(absl::StrCat(
      directory, ": holds no complete checkpoint",
      found.empty() ? "" : absl::StrCat("; ", found[0].status.message())));
}

}  // namespace

absl::StatusOr<std::string> OpenCheckpointFolder(const std::string& directory,
                                                 int64_t step) {
  if (step < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a checkpoint wants a step of 0 or more, got ", step));
  }
  std::error_code error;
  const std::string folder =
      absl::StrCat(directory, "/", CheckpointFolderName(step));
  fs::create_directories(folder, error);
  if (error) return FileError(folder, "create", error.value());
  return folder;
}

absl::Status WriteManifest(const std::string& directory,
                           const v1::CheckpointManifest& manifest,
                           const std::string& key) {
  TRIBUTARY_RETURN_IF_ERROR(CheckManifest(manifest));
  for (const v1::CheckpointFile& file : FilesOf(manifest)) {
    if (key.empty() || !file.sha256().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(),
                     " has no sha256, which a keyed checksum wants: is its "
                     "writer's version older?"));
  }
  const std::string folder =
      absl::StrCat(directory, "/", CheckpointFolderName(manifest.step()));
  TRIBUTARY_RETURN_IF_ERROR(CheckFiles(folder, manifest));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<PagedFileWriter> file,
      PagedFileWriter::Create(ManifestPath(folder), PagedFileKind::kManifest,
                              SerializeManifest(manifest, key),
                              /*data_bytes=*/0));
  // If the directory's own entry were lost, the manifest would be lost with it.
  TRIBUTARY_RETURN_IF_ERROR(SyncFolder(directory));
  TRIBUTARY_FAILPOINT_OR("manifest-before-rename",
                         return FileError(ManifestPath(folder), "fsync", EIO));
  TRIBUTARY_RETURN_IF_ERROR(file->Commit());
  TRIBUTARY_FAILPOINT("manifest-after-rename");
  return absl::OkStatus();
}

absl::Status RevokeManifest(const std::string& directory, int64_t step) {
  return RemoveManifest(
      absl::StrCat(directory, "/", CheckpointFolderName(step)));
}

CheckpointInfo ReadCheckpointInfo(const std::string& folder) {
  CheckpointInfo info;
  info.path = folder;
  info.step = StepOfFolder(folder).value_or(info.step);
  info.status = ReadInfo(&info);
  return info;
}

bool HasManifest(const CheckpointInfo& info) {
  std::error_code error;
  return fs::exists(ManifestPath(info.path), error);
}

absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(
    const std::string& directory) {
  std::vector<CheckpointInfo> found;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (!StepOfFolder(it->path().string())) continue;
    found.push_back(ReadCheckpointInfo(it->path().string()));
  }
  if (error) return FileError(directory, "list", error.value());
  found.erase(std::remove_if(found.begin(), found.end(),
                             [](const CheckpointInfo& info) {
                               std::error_code gone;
                               return !info.complete() &&
                                      !fs::exists(info.path, gone);
                             }),
              found.end());
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

absl::StatusOr<CheckpointInfo> NewestCheckpoint(const std::string& directory) {
  TRIBUTARY_ASSIGN_OR_RETURN(std::vector<CheckpointInfo> found,
                             ListCheckpoints(directory));
  for (CheckpointInfo& info : found) {
    if (info.complete()) return std::move(info);
  }
  return NoCheckpoint(directory, found);
}

absl::Status PruneCheckpoints(const std::string& directory, int keep,
                              const CheckpointOwner& owner) {
  if (keep < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("wants at least 1 checkpoint to keep, got ", keep));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             ListCheckpoints(directory));
  absl::Status first;
  int complete = 0;
  for (const CheckpointInfo& info : found) {
    if (!IsOf(info, owner.lineage)) continue;
    if (info.complete() &&
        (++complete <= keep || info.step == owner.best_step)) {
      first.Update(RemoveStrays(info, owner.writer));
      continue;
    }
    const bool newest = complete == 0;
    if (newest && (!owner.writer.empty() || HasManifest(info))) continue;
    first.Update(RemoveFolder(info.path));
  }
  return first;
}

absl::Status RemoveCheckpointsAfter(const std::string& directory, int64_t step,
                                    uint64_t lineage) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::vector<CheckpointInfo> found,
                             ListCheckpoints(directory));
  absl::Status first;
  for (const CheckpointInfo& info : found) {
    if (info.step <= step || !IsOf(info, lineage)) continue;
    first.Update(RemoveFolder(info.path));
  }
  return first;
}

}  // namespace tributary
