// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_directory.h"

namespace tributary {

// The target of a path on the command line: one checkpoint's directory, a
// directory of checkpoints, or a run directory, which stands for its
// checkpoints/ or for checkpoint.directory of its job.
struct CheckpointPlace {
  std::string path;
  bool is_directory = false;  // of checkpoints; else one checkpoint
};

// NotFound: there is no such directory.
absl::StatusOr<CheckpointPlace> FindCheckpoints(const std::string& path);

// Whether a checkpoint found there is of the run itself. Where runs that went
// on from each other share a directory, it may be of a later one. True if `run`
// is no run directory, or if it is unknown.
bool IsOfRun(const std::string& run, const CheckpointPlace& place,
             const CheckpointInfo& info);

// All checkpoints of a directory, the newest first, or the single one. Errors
// as FindCheckpoints and ListCheckpoints.
absl::StatusOr<std::vector<CheckpointInfo>> CheckpointsAt(
    const CheckpointPlace& place);

// The directory of the checkpoint that `path` refers to; of a directory of
// checkpoints its newest. Incomplete checkpoints (no manifest) are passed over;
// the newer ones are added to `passed_over` if it is given. A checkpoint with a
// damaged manifest or a missing file is an error, worded by NameOlder. NotFound
// when there is no checkpoint.
absl::StatusOr<std::string> CheckpointAt(
    const std::string& path, std::vector<std::string>* passed_over = nullptr);

// The newest checkpoint at `path` of which every byte is as it was written,
// with the right keyed checksum where there is a `key`. Adds to `passed_over` a
// sentence about each newer one. NotFound: there is none.
absl::StatusOr<std::string> NewestWholeAt(
    const std::string& path, const std::string& key,
    std::vector<std::string>* passed_over);

// Adds to `damage`, an error of the checkpoint in `folder`, the path of the
// newest intact older checkpoint beside it. The user decides whether to use
// that one.
absl::Status NameOlder(const absl::Status& damage, const std::string& folder);

}  // namespace tributary
