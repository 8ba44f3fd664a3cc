#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A directory of checkpoints, held by the coordinator of one job for as long as
// the object lives: another one that wants it is refused. The system's lock on
// the folder itself (flock) says so, thus a process that is killed leaves
// nothing behind.
class CheckpointClaim {
 public:
  // Makes the directory if it is not there. FailedPrecondition, with what to do
  // about it: a job that has not ended holds the directory. Errors of the
  // system as FileError. On a file system without locks of folders it is held
  // without.
  static absl::StatusOr<std::unique_ptr<CheckpointClaim>> Take(
      const std::string& directory);

 private:
  explicit CheckpointClaim(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
};

// FailedPrecondition, naming the other job and what to do: the directory holds
// a checkpoint of another lineage. `begins`: the job has no checkpoint yet, so
// one that does not say whose it is is another's.
absl::Status CheckLineage(const std::string& directory, uint64_t lineage,
                          bool begins);

}  // namespace tributary
