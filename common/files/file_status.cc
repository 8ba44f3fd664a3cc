// SPDX-License-Identifier: Apache-2.0
#include "common/files/file_status.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "common/status/cause.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::Status FileError(const std::string& path, absl::string_view action,
                       int error) {
  const std::string text =
      absl::StrCat(path, ": ", action, ": ", strerror(error),
                   error == EFBIG ? " (ulimit -f)" : "");
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return WithCause(absl::ResourceExhaustedError(text), v1::CAUSE_FULL_DISK);
    case EIO:
      return absl::DataLossError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    default:
      return absl::UnavailableError(text);
  }
}

absl::Status SyncFolder(const std::string& folder) {
  const UniqueFd fd(open(folder.empty() ? "." : folder.c_str(),
                         O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) return FileError(folder, "open", errno);
  // Some file systems cannot sync a directory and return EINVAL.
  if (fsync(fd.get()) != 0 && errno != EINVAL) {
    return FileError(folder, "fsync", errno);
  }
  return absl::OkStatus();
}

absl::Status SyncFiles(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.ok()) return FileError(path, "open", errno);
    if (fsync(fd.get()) != 0) return FileError(path, "fsync", errno);
  }
  if (error) return FileError(folder, "open", error.value());
  return SyncFolder(folder);
}

}  // namespace tributary
