// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

namespace tributary::testing {

// Returns a key that identifies a file whatever its name, as in "f1234-567.89":
// 'f' for a file or 'd' for a folder, then inode and time of birth, because a
// file system gives the inode of a removed file to a new one. Returns "" if
// there is no file, or one of another kind. Follows links.
inline std::string FileKey(const std::string& path) {
  struct statx status = {};
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME,
            &status) != 0) {
    return "";
  }
  const bool folder = S_ISDIR(status.stx_mode);
  if (!folder && !S_ISREG(status.stx_mode)) return "";
  return (folder ? "d" : "f") + std::to_string(status.stx_ino) + "-" +
         std::to_string(status.stx_btime.tv_sec) + "." +
         std::to_string(status.stx_btime.tv_nsec);
}

}  // namespace tributary::testing
