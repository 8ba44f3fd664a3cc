// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_directory.h"

namespace tributary {

// The meaning of a path on the command line: one checkpoint's directory, a
// directory of checkpoints, or a run directory, which stands for its
// checkpoints/ or for checkpoint.directory of its job.
struct CheckpointPlace {
  std::string path;
  bool is_directory = false;  // of checkpoints; false: one checkpoint
};

// NotFound: there is no such directory.
absl::StatusOr<CheckpointPlace> FindCheckpoints(const std::string& path);

// Whether a checkpoint found there belongs to the run itself. If runs that
// continued one another share a directory, it may belong to a later run. True
// if `run` is not a run directory, or if the answer is unknown.
bool IsOfRun(const std::string& run, const CheckpointPlace& place,
             const CheckpointInfo& info);

// All checkpoints of a directory, the newest first, or the single one. Errors
// as FindCheckpoints and ListCheckpoints.
absl::StatusOr<std::vector<CheckpointInfo>> CheckpointsAt(
    const CheckpointPlace& place);

// The directory of the checkpoint that `path` refers to; if it is a directory
// of checkpoints, that of the newest one. Incomplete checkpoints (no manifest)
// are passed over; the newer ones are added to `passed_over` if it is not null.
// A damaged manifest or a missing file is an error, worded by NameOlder.
// NotFound: there is no checkpoint.
absl::StatusOr<std::string> CheckpointAt(
    const std::string& path, std::vector<std::string>* passed_over = nullptr);

// The newest checkpoint at `path` in which every byte is as it was written,
// with the right keyed checksum if there is a `key`. Adds a sentence about each
// newer checkpoint to `passed_over`. NotFound: there is no such checkpoint.
absl::StatusOr<std::string> NewestWholeAt(
    const std::string& path, const std::string& key,
    std::vector<std::string>* passed_over);

// Adds the path of the newest intact older checkpoint beside `folder` to
// `damage`, an error of the checkpoint in `folder`. The user decides whether to
// use that checkpoint.
absl::Status NameOlder(const absl::Status& damage, const std::string& folder);

}  // namespace tributary
