// SPDX-License-Identifier: Apache-2.0
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
//                               residual-000-of-002-JOB-EPOCH.ckpt  of a rank
//                               manifest.ckpt                     written last
// A directory without a valid manifest is not a checkpoint.
//
// Order of writing: every server, and every rank of a job with residuals, calls
// OpenCheckpointFolder and WriteShardFile (shard_file.h). Then one process
// calls WriteManifest with the results of all WriteShardFile calls, and
// PruneCheckpoints.
//
// Checkpoints belong to a lineage: a new job, and the jobs that were resumed
// from its checkpoints. A directory holds the checkpoints of one lineage
// (checkpoint_claim.h); functions that remove checkpoints never touch those of
// another lineage.

// Creates DIRECTORY and the subdirectory for `step` if necessary, and returns
// its path. Errors as FileError.
absl::StatusOr<std::string> OpenCheckpointFolder(const std::string& directory,
                                                 int64_t step);

// Writes the manifest into the directory of its step, which makes it a
// checkpoint; with a `key` it gets a keyed checksum. On return the directory's
// own entry is on disk. The manifest's `files` are sorted by shard, as returned
// by WriteShardFile. InvalidArgument: the manifest contradicts itself, or there
// is a key and a file has no sha256. NotFound, DataLoss: a file that it names
// is missing or has another size. System errors as FileError; after one the
// directory is not a checkpoint.
absl::Status WriteManifest(const std::string& directory,
                           const v1::CheckpointManifest& manifest,
                           const std::string& key = "");

// Removes the manifest, so that this step is not a checkpoint any more; its
// other files stay.
absl::Status RevokeManifest(const std::string& directory, int64_t step);

struct CheckpointInfo {
  std::string path;  // of the checkpoint's directory
  int64_t step = 0;  // from its name or manifest
  // OK: the manifest is valid and every file exists with its size; file
  // contents are not checked. Otherwise the reason why this is not a
  // checkpoint.
  absl::Status status;
  v1::CheckpointManifest manifest;  // empty: missing or unreadable
  int64_t bytes = 0;                // of all its files
  uint64_t lineage = 0;             // from its manifest or a file; 0: unknown

  bool complete() const { return status.ok(); }
};

// True if the directory has a manifest, valid or damaged, so that it is or was
// a checkpoint.
bool HasManifest(const CheckpointInfo& info);

// Reads one checkpoint's directory.
CheckpointInfo ReadCheckpointInfo(const std::string& folder);

// The subdirectories named like checkpoints, the newest (highest step) first,
// complete or not. Other names, and directories removed meanwhile, are skipped.
// NotFound: there is no such directory.
absl::StatusOr<std::vector<CheckpointInfo>> ListCheckpoints(
    const std::string& directory);

// The newest complete checkpoint. NotFound: there is none; the error tells what
// the newest incomplete one lacks.
absl::StatusOr<CheckpointInfo> NewestCheckpoint(const std::string& directory);

// The owner of the checkpoints that may be kept or removed. A checkpoint that
// names no lineage counts as this owner's.
struct CheckpointOwner {
  uint64_t lineage = 0;
  // WriterTag of the current writer: its files stay although no manifest names
  // them yet. Empty: no process writes.
  std::string writer;
  int64_t best_step = 0;  // is kept beside the newest ones; 0: no best step
};

// Keeps the newest `keep` complete checkpoints but removes files in them that
// their manifests do not name. Removes the older ones, and incomplete ones that
// are older than the newest complete one. A newer incomplete one stays while
// there is a writer, which may still be writing it. InvalidArgument: keep < 1.
// Continues after an error and returns the first.
absl::Status PruneCheckpoints(const std::string& directory, int keep,
                              const CheckpointOwner& owner);

// Removes every checkpoint above `step`, complete or not, the newest first. A
// job that goes back to `step` computes the later steps again, and the old
// checkpoints would count as newer than its own. Continues after an error and
// returns the first.
absl::Status RemoveCheckpointsAfter(const std::string& directory, int64_t step,
                                    uint64_t lineage);

}  // namespace tributary
