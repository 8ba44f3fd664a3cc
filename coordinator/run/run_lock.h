// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Reserves a run directory for one coordinator with an flock on its
// coordinator.lock, a file that names the holder. The kernel releases the lock
// however the process ends. On a file system without locks every process gets
// the lock.
class RunLock {
 public:
  // FailedPrecondition: another process holds the lock; the message names the
  // process.
  static absl::StatusOr<std::unique_ptr<RunLock>> Take(
      const std::string& directory);
  // Whether a process of this host holds the lock. False if that is unknown.
  static bool IsHeld(const std::string& directory);
  // Removes the file, unless Leave was called.
  ~RunLock();
  // Another coordinator has taken over this directory and owns the file now.
  void Leave() { left_ = true; }

  const std::string& directory() const { return directory_; }
  // Writes this coordinator's address into the file, for the error message that
  // a second coordinator gets.
  void SetAddress(const std::string& address);

  // NotFound: the directory or the lock file was removed or replaced.
  absl::Status Check() const;

  // The process that a directory's lock file names; nullopt: there is no such
  // file, or it names none. The process may be gone.
  struct Holder {
    std::string address;  // host:port
    std::string host;
    int64_t pid = 0;
  };
  static std::optional<Holder> ReadHolder(const std::string& directory);

  static constexpr char kFile[] = "coordinator.lock";

 private:
  RunLock(std::string directory, UniqueFd fd)
      : directory_(std::move(directory)), fd_(std::move(fd)) {}

  const std::string directory_;
  const UniqueFd fd_;
  bool left_ = false;
};

}  // namespace tributary
