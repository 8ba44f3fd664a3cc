// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Reserves a checkpoint directory for the coordinator of one job while the
// object lives; another coordinator is refused. It uses the system's lock of
// the directory itself (flock), so a process that is killed leaves nothing
// behind.
class CheckpointClaim {
 public:
  // Creates the directory if necessary. FailedPrecondition, with advice: a job
  // that has not ended holds the directory. System errors as FileError. On a
  // file system that cannot lock directories it takes no lock.
  static absl::StatusOr<std::unique_ptr<CheckpointClaim>> Take(
      const std::string& directory);

 private:
  explicit CheckpointClaim(UniqueFd fd) : fd_(std::move(fd)) {}

  const UniqueFd fd_;
};

// FailedPrecondition, naming the other job and giving advice: the directory
// holds a checkpoint of another lineage. `begins`: this job has no checkpoint
// yet, so a checkpoint without a lineage belongs to another job.
absl::Status CheckLineage(const std::string& directory, uint64_t lineage,
                          bool begins);

}  // namespace tributary
