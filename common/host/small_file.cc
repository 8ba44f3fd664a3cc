// SPDX-License-Identifier: Apache-2.0
#include "common/host/small_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "common/host/steady_waits.h"

namespace tributary {
namespace {

absl::Status NotReadable(const std::string& path, int error) {
  if (error == ENOENT) {
    return absl::NotFoundError(absl::StrCat(path, ": there is no such file"));
  }
  return absl::InvalidArgumentError(
      error == EISDIR
          ? absl::StrCat(path, ": wants a file, got a folder")
          : absl::StrCat(path, ": cannot be read: ", strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t max_bytes,
                                          absl::Duration patience) {
  const absl::Duration deadline = SteadyNow() + patience;
  // O_NONBLOCK: a pipe that nobody writes to is empty.
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.ok()) return NotReadable(path, errno);
  std::string text;
  std::array<char, 1 << 14> part;
  while (text.size() <= max_bytes) {
    const ssize_t got = read(file.get(), part.data(), part.size());
    if (got == 0) return text;
    if (got > 0) {
      text.append(part.data(), static_cast<size_t>(got));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return NotReadable(path, errno);
    const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow());
    if (left <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": its writer did not finish within ",
                       absl::FormatDuration(patience)));
    }
    pollfd ready{.fd = file.get(), .events = POLLIN, .revents = 0};
    poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": wants at most ", max_bytes, " bytes"));
}

absl::Status CheckReadable(const std::string& path) {
  struct stat found {};
  int error = stat(path.c_str(), &found) == 0 ? 0 : errno;
  if (error == ENOENT || error == ENOTDIR) return absl::OkStatus();
  const int wanted = S_ISDIR(found.st_mode) ? X_OK : R_OK;
  if (error == 0 &&
      faccessat(AT_FDCWD, path.c_str(), wanted, AT_EACCESS) != 0) {
    error = errno;
  }
  if (error == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " cannot be read: ", strerror(error)));
}

std::string ReadText(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
  std::string text;
  std::array<char, 1 << 14> part;
  while (true) {
    const ssize_t got = read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

}  // namespace tributary
