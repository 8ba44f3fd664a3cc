// SPDX-License-Identifier: Apache-2.0
#include "server/service/shared_memory/claimed_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/host/memory/unix_socket.h"

namespace tributary {
namespace {

constexpr char kSocketPrefix[] = "tributary-";
constexpr char kSocketSuffix[] = ".sock";
constexpr char kLockSuffix[] = ".lock";  // after the socket's name

bool Exists(const std::string& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0;
}

// Not ok, with errno: another process has the lock, or locking failed.
UniqueFd Lock(const std::string& path, int flags) {
  UniqueFd file(
      open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (file.ok() && flock(file.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
  return file;
}

// Removes a socket and its lock if both were left behind.
void RemoveIfAbandoned(const std::string& socket) {
  const std::string lock_path = socket + kLockSuffix;
  UniqueFd lock;
  if (Exists(lock_path)) {
    lock = Lock(lock_path, 0);
    if (!lock.ok()) return;  // its server lives
  }
  if (Exists(socket) && !IsAbandonedUnix(socket)) return;
  unlink(socket.c_str());
  if (lock.ok()) unlink(lock_path.c_str());
}

void RemoveAbandoned(const std::string& directory) {
  DIR* const files = opendir(directory.c_str());
  if (files == nullptr) return;
  while (const dirent* file = readdir(files)) {
    absl::string_view name = file->d_name;
    absl::ConsumeSuffix(&name, kLockSuffix);
    if (absl::StartsWith(name, kSocketPrefix) &&
        absl::EndsWith(name, kSocketSuffix)) {
      RemoveIfAbandoned(absl::StrCat(directory, "/", name));
    }
  }
  closedir(files);
}

std::string NewName() {
  std::random_device chance;
  return absl::StrCat(kSocketPrefix, absl::Hex(chance(), absl::kZeroPad8),
                      absl::Hex(chance(), absl::kZeroPad8));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClaimedSocket>> ClaimedSocket::Claim(
    const std::string& directory) {
  if (directory.empty()) {
    return std::unique_ptr<ClaimedSocket>(
        new ClaimedSocket(absl::StrCat("@", NewName()), UniqueFd()));
  }
  RemoveAbandoned(directory);
  constexpr int kTries = 16;
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    std::string address =
        absl::StrCat(directory, "/", NewName(), kSocketSuffix);
    UniqueFd lock = Lock(address + kLockSuffix, O_CREAT | O_EXCL);
    error = errno;
    struct stat file {};
    // Between creating the file and locking it, another server may have removed
    // it as abandoned.
    if (!lock.ok() && error != EWOULDBLOCK) break;
    if (!lock.ok() || fstat(lock.get(), &file) != 0 || file.st_nlink == 0) {
      continue;
    }
    return std::unique_ptr<ClaimedSocket>(
        new ClaimedSocket(std::move(address), std::move(lock)));
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot lock a file in ", directory, ": ", std::strerror(error)));
}

ClaimedSocket::~ClaimedSocket() {
  if (!lock_.ok()) return;
  unlink(address_.c_str());
  unlink((address_ + kLockSuffix).c_str());
}

}  // namespace tributary
