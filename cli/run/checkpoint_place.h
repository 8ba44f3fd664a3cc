#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_directory.h"

namespace tributary {

// What a path on the command line stands for: the folder of one checkpoint, a
// directory of them, or a run directory, whose checkpoints/ is meant.
struct CheckpointPlace {
  std::string path;
  bool is_directory = false;  // of checkpoints; else the folder of one
};

// NotFound: there is no such folder.
absl::StatusOr<CheckpointPlace> FindCheckpoints(const std::string& path);

// All of a directory, the newest first, or the one. Errors as FindCheckpoints
// and ListCheckpoints.
absl::StatusOr<std::vector<CheckpointInfo>> CheckpointsAt(
    const CheckpointPlace& place);

// The folder of the checkpoint that is meant: of a directory its newest one.
// Folders without a manifest, which were never checkpoints, are passed over;
// one with a damaged manifest or without a file of its own is an error, as
// NameOlder has it. NotFound when there is none. `passed_over`, if given, gets
// the newer folders without a manifest.
absl::StatusOr<std::string> CheckpointAt(
    const std::string& path, std::vector<std::string>* passed_over = nullptr);

// Adds to `damage`, found in the checkpoint in `folder`, the name of the newest
// older checkpoint beside it that is whole. The user decides whether to take
// that one.
absl::Status NameOlder(const absl::Status& damage, const std::string& folder);

}  // namespace tributary
