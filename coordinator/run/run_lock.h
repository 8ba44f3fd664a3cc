#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Keeps a run directory for one coordinator: an flock on its coordinator.lock,
// which the kernel gives up when the process ends, however it ends. The file
// says who holds it. Where the file system has no locks, any process gets one.
class RunLock {
 public:
  // FailedPrecondition: another process holds it; the sentence names it.
  static absl::StatusOr<std::unique_ptr<RunLock>> Take(
      const std::string& directory);
  // Removes the file, unless Leave was called.
  ~RunLock();
  // Another coordinator goes on here: the file is its own.
  void Leave() { left_ = true; }

  const std::string& directory() const { return directory_; }
  // Writes this coordinator's address into the lock, so that the sentence to a
  // second coordinator can name it.
  void SetAddress(const std::string& address);

  // NotFound: the directory, or this file of it, was removed or replaced.
  absl::Status Check() const;

  static constexpr char kFile[] = "coordinator.lock";

 private:
  RunLock(std::string directory, UniqueFd fd)
      : directory_(std::move(directory)), fd_(std::move(fd)) {}

  const std::string directory_;
  const UniqueFd fd_;
  bool left_ = false;
};

}  // namespace tributary
