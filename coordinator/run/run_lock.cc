// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <regex>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files/file_status.h"

namespace tributary {
namespace {

std::string PathIn(const std::string& directory) {
  return absl::StrCat(directory, "/", RunLock::kFile);
}

std::string HolderText(const std::string& address) {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return absl::StrCat(address.empty() ? "a coordinator" : "the coordinator at ",
                      address, " (", host, ", pid ", getpid(), ")");
}

void Describe(int fd, const std::string& holder) {
  // The text only informs people: on a full disk the lock holds without it.
  if (ftruncate(fd, 0) != 0) return;
  (void)!pwrite(fd, holder.data(), holder.size(), 0);
}

absl::Status HeldBy(const std::string& directory, int fd) {
  char text[512];
  const ssize_t size = pread(fd, text, sizeof(text), 0);
  const std::string holder = size > 0
                                 ? std::string(text, static_cast<size_t>(size))
                                 : "another process";
  return absl::FailedPreconditionError(
      absl::StrCat("run directory ", directory, " is in use by ", holder));
}

// True while `path` is the file that `fd` has open.
bool IsFile(const std::string& path, int fd) {
  struct stat there {
  }, open{};
  return stat(path.c_str(), &there) == 0 && fstat(fd, &open) == 0 &&
         there.st_dev == open.st_dev && there.st_ino == open.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunLock>> RunLock::Take(
    const std::string& directory) {
  const std::string path = PathIn(directory);
  constexpr int kAttempts = 100;  // retries when a holder just ends
  for (int i = 0; i < kAttempts; ++i) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd.ok()) return FileError(path, "create", errno);
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return HeldBy(directory, fd.get());
      if (errno != ENOSYS && errno != EOPNOTSUPP && errno != ENOLCK) {
        return FileError(path, "lock", errno);
      }
    }
    // The previous holder may have removed the file after it was opened here.
    if (!IsFile(path, fd.get())) continue;
    Describe(fd.get(), HolderText(""));
    return std::unique_ptr<RunLock>(new RunLock(directory, std::move(fd)));
  }
  return absl::UnavailableError(
      absl::StrCat(path, " is taken and given up again and again"));
}

bool RunLock::IsHeld(const std::string& directory) {
  const UniqueFd fd(open(PathIn(directory).c_str(), O_RDONLY | O_CLOEXEC));
  return fd.ok() && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

RunLock::~RunLock() {
  if (!left_ && Check().ok()) unlink(PathIn(directory_).c_str());
}

void RunLock::SetAddress(const std::string& address) {
  Describe(fd_.get(), HolderText(address));
}

std::optional<RunLock::Holder> RunLock::ReadHolder(
    const std::string& directory) {
  static const std::regex pattern(
      R"(the coordinator at (\S+:[0-9]+) \((.*), pid ([0-9]+)\))");
  std::ifstream file(PathIn(directory), std::ios::binary);
  std::string text(512, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  std::smatch found;
  Holder holder;
  if (!std::regex_match(text, found, pattern) ||
      !absl::SimpleAtoi(found[3].str(), &holder.pid)) {
    return std::nullopt;
  }
  holder.address = found[1];
  holder.host = found[2];
  return holder;
}

absl::Status RunLock::Check() const {
  if (IsFile(PathIn(directory_), fd_.get())) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("run directory ", directory_,
                   " was removed or replaced while the job was running: its ",
                   kFile, " is gone"));
}

}  // namespace tributary
