// SPDX-License-Identifier: Apache-2.0
#include "common/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/file_status.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr char kAside[] = ".partial-";

}  // namespace

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& path, unsigned int mode) {
  static std::atomic<int> counter{0};
  constexpr int kAttempts = 100;  // skips names of crashed processes
  for (int i = 0; i < kAttempts; ++i) {
    std::string aside =
        absl::StrCat(path, kAside, getpid(), "-", counter.fetch_add(1));
    UniqueFd fd(
        open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (fd.ok()) {
      return std::unique_ptr<AtomicFile>(
          new AtomicFile(path, std::move(aside), std::move(fd)));
    }
    if (errno != EEXIST) return FileError(path, "create", errno);
  }
  return FileError(path, "create", EEXIST);
}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::CreateOutput(
    const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode) ||
      S_ISDIR(found.st_mode)) {
    return Create(path);
  }
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.ok()) return FileError(path, "open", errno);
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(path, /*aside=*/"", std::move(fd)));
}

AtomicFile::~AtomicFile() {
  if (!aside_.empty()) unlink(aside_.c_str());
}

absl::Status AtomicFile::Append(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd_.get(), next, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError(path_, "write", errno);
    }
    next += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (aside_.empty()) {
    if (close(fd_.Release()) != 0) return FileError(path_, "close", errno);
    return absl::OkStatus();
  }
  if (fsync(fd_.get()) != 0) return FileError(path_, "fsync", errno);
  if (close(fd_.Release()) != 0) return FileError(path_, "close", errno);
  if (rename(aside_.c_str(), path_.c_str()) != 0) {
    return FileError(path_, "rename", errno);
  }
  aside_.clear();
  // The rename is durable only when its directory is synced.
  return SyncFolder(std::filesystem::path(path_).parent_path().string());
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                             AtomicFile::Create(path));
  TRIBUTARY_RETURN_IF_ERROR(file->Append(contents));
  return file->Commit();
}

absl::Status WriteOutput(const std::string& path, absl::string_view contents) {
  TRIBUTARY_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                             AtomicFile::CreateOutput(path));
  TRIBUTARY_RETURN_IF_ERROR(file->Append(contents));
  return file->Commit();
}

void RemoveHalfWritten(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StrContains(name, kAside)) unlink(entry.path().c_str());
  }
}

}  // namespace tributary
