#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// A directory of checkpoints (their manifests: manifest.h; their other files:
// shard_file.h):
//   DIRECTORY/step-000000000020/shard-000-of-002.ckpt   one for each server
//                               shard-001-of-002.ckpt
//                               manifest.ckpt           written last
// A folder without a valid manifest is not a checkpoint.
//
// The order of writing: CreateCheckpointFolder by one process; WriteShardFile
// (shard_file.h) by every server; WriteManifest by that one process, with what
// the servers' WriteShardFile returned; PruneCheckpoints.

// "step-000000000020"
std::string CheckpointFolderName(int64_t step);

// Makes DIRECTORY and the folder for `step` in it, empty, and returns its path.
// What stood under its name, a half-written or a whole checkpoint, is removed,
// the manifest first. Errors as FileError.
absl::StatusOr<std::string> CreateCheckpointFolder(const std::string& directory,
                                                   int64_t step);

// Writes the manifest into the folder of its step and so makes it a checkpoint.
// `files` are by shard, as WriteShardFile returned them. InvalidArgument: the
// manifest contradicts itself. NotFound, DataLoss: a file that it names is not
// there with its size. Errors of the system as FileError; after one the folder
// is no checkpoint.
absl::Status WriteManifest(const std::string& directory,
                           const v1::CheckpointManifest& manifest);

struct CheckpointInfo {
  std::string path;  // of the folder
  int64_t step = 0;  // of its name, or its manifest's
  // OK: the manifest is valid and every file is there with its size; what is
  // in them is not looked at. Else why this is no checkpoint.
  absl::Status status;
  v1::CheckpointManifest manifest;  // with an OK status
  int64_t bytes = 0;                // of all its files

  bool complete() const { return status.ok(); }
};

// One folder, whatever its name.
CheckpointInfo ReadCheckpointInfo(const std::string& folder);

// The folders named like checkpoints, the newest (highest step) first, complete
// or not; other names are passed over. NotFound: there is no such directory.
absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(
    const std::string& directory);

// The newest complete one. NotFound, with what is wrong with the newest, when
// there is none.
absl::StatusOr<CheckpointInfo> NewestCheckpoint(const std::string& directory);

// Keeps the newest `keep` complete checkpoints; removes the older ones and what
// is incomplete and older than the newest complete one. An incomplete folder
// that is newer may be one that is being written: it stays.
// InvalidArgument: keep < 1. Goes on after an error and returns the first.
absl::Status PruneCheckpoints(const std::string& directory, int keep);

// Removes every folder of a step above `step`, complete or not, the newest
// first: a job that goes back to `step` takes another way from there, and the
// checkpoints of the first way would count as newer than its own. Goes on after
// an error and returns the first.
absl::Status RemoveCheckpointsAfter(const std::string& directory, int64_t step);

}  // namespace tributary
