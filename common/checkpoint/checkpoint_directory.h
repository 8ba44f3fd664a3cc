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
//   DIRECTORY/step-000000000020/shard-000-of-002-JOB-EPOCH.ckpt   of a server
//                               shard-001-of-002-JOB-EPOCH.ckpt
//                               manifest.ckpt                     written last
// A folder without a valid manifest is not a checkpoint.
//
// The order of writing: OpenCheckpointFolder and WriteShardFile (shard_file.h)
// by every server; WriteManifest by one process, with what the servers'
// WriteShardFile returned; PruneCheckpoints.
//
// Checkpoints belong to a lineage: the job that began, and those that were
// resumed from its checkpoints. A directory holds one lineage's
// (checkpoint_claim.h); functions that remove touch no other's.

// "step-000000000020"
std::string CheckpointFolderName(int64_t step);

// Makes DIRECTORY and the folder for `step` in it, unless they are there, and
// returns its path. Errors as FileError.
absl::StatusOr<std::string> OpenCheckpointFolder(const std::string& directory,
                                                 int64_t step);

// Writes the manifest into the folder of its step and so makes it a checkpoint;
// its folder's entry is on the disk when this returns.
// `files` are by shard, as WriteShardFile returned them. InvalidArgument: the
// manifest contradicts itself. NotFound, DataLoss: a file that it names is not
// there with its size. Errors of the system as FileError; after one the folder
// is no checkpoint.
absl::Status WriteManifest(const std::string& directory,
                           const v1::CheckpointManifest& manifest);

// The folder of this step is no checkpoint any more; its other files stay.
absl::Status RevokeManifest(const std::string& directory, int64_t step);

struct CheckpointInfo {
  std::string path;  // of the folder
  int64_t step = 0;  // of its name, or its manifest's
  // OK: the manifest is valid and every file is there with its size; what is
  // in them is not looked at. Else why this is no checkpoint.
  absl::Status status;
  v1::CheckpointManifest manifest;  // empty: there is none that can be read
  int64_t bytes = 0;                // of all its files
  uint64_t lineage = 0;  // as its manifest or a file says; 0: none says it

  bool complete() const { return status.ok(); }
};

// A manifest stands in the folder, whole or damaged: it was a checkpoint.
bool HasManifest(const CheckpointInfo& info);

// One folder, whatever its name.
CheckpointInfo ReadCheckpointInfo(const std::string& folder);

// The folders named like checkpoints, the newest (highest step) first, complete
// or not; other names, and folders that are removed meanwhile, are passed over.
// NotFound: there is no such directory.
absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(
    const std::string& directory);

// The newest complete one. NotFound, with what is wrong with the newest, when
// there is none.
absl::StatusOr<CheckpointInfo> NewestCheckpoint(const std::string& directory);

// The owner of the checkpoints that may be kept or removed. Folders that name
// no owner count as the owner's.
struct CheckpointOwner {
  uint64_t lineage = 0;
  // WriterTag of who writes now: those files stay in a folder although its
  // manifest does not name them yet. Empty: nobody writes.
  std::string writer;
};

// Keeps the newest `keep` complete checkpoints, without files that their
// manifests do not name; removes the older ones and what is incomplete and
// older than the newest complete one. An incomplete folder that is newer may be
// one that is being written: it stays, unless nobody writes.
// InvalidArgument: keep < 1. Goes on after an error and returns the first.
absl::Status PruneCheckpoints(const std::string& directory, int keep,
                              const CheckpointOwner& owner);

// Removes every folder of a step above `step`, complete or not, the newest
// first: a job that goes back to `step` takes another way from there, and the
// checkpoints of the first way would count as newer than its own. Goes on after
// an error and returns the first.
absl::Status RemoveCheckpointsAfter(const std::string& directory, int64_t step,
                                    uint64_t lineage);

}  // namespace tributary
