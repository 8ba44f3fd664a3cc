// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/files/shard_file.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// A checkpoint open for reading by any number of threads. It assembles tensors
// from the files that hold their parts. The files stay open, so pruning does
// not disturb reading.
//
// DataLoss, with file and byte, means that this checkpoint is damaged: use an
// older one.
class CheckpointReader {
 public:
  // Opening checks the manifest, the size and index of every file, and that the
  // files hold every element exactly once. Tensors are checked as they are
  // read. NotFound: the directory is not a checkpoint, or a file is missing.
  // Several readers can share the comparison of the files' checksums with the
  // manifest: this reader is number `part` of `parts`.
  struct Part {
    int part = 0;
    int parts = 0;  // 0: this reader compares no file
  };
  // With a `key`, the manifest's keyed checksum must be right (ReadManifest).
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder, Part part, const std::string& key = "");
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder) {
    return Open(folder, Part());
  }
  // Opens a reader that compares the checksums of all files.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder, const std::string& key) {
    return Open(folder, {.part = 0, .parts = 1}, key);
  }

  const std::string& folder() const { return folder_; }
  const v1::CheckpointManifest& manifest() const { return manifest_; }
  const ParameterSpecs& parameters() const { return parameters_; }
  const std::vector<std::string>& state_names() const { return state_names_; }
  // How many of the steps changed nothing (CheckpointShard.skipped_steps).
  int64_t skipped_steps() const { return files_[0]->header().skipped_steps; }

  // Reads elements from `begin` on: of a parameter's weights (tensor 0) or of a
  // state (1 + its index in state_names()). OutOfRange when there are too few.
  absl::Status ReadRange(int tensor, int parameter, int64_t begin,
                         absl::Span<float> values) const;

  // Reads the pages not read so far of the files in this reader's part, and
  // compares those files with the manifest. DataLoss: a file's checksum, or its
  // sha256 if the manifest has one, differs from the manifest.
  absl::Status CompareChecksums() const;

 private:
  struct Piece {
    size_t file = 0;
    const ShardFile::Range* range = nullptr;
  };

  CheckpointReader(std::string folder, Part part)
      : folder_(std::move(folder)), part_(part) {}

  // Whether this reader compares the checksum of file number `file`.
  bool Compares(int file) const {
    return part_.parts > 0 && file % part_.parts == part_.part;
  }

  absl::Status OpenFiles();
  absl::Status IndexPieces();
  absl::Status Read(int tensor, int parameter, int64_t begin,
                    absl::Span<float> values,
                    std::vector<PageBuffer>* buffers) const;

  const std::string folder_;
  const Part part_;
  v1::CheckpointManifest manifest_;
  ParameterSpecs parameters_;
  std::vector<std::string> state_names_;
  std::vector<std::unique_ptr<ShardFile>> files_;
  std::vector<std::vector<Piece>> pieces_;  // [parameter], sorted by begin
};

// The result of reading every byte of one checkpoint file.
struct FileReport {
  std::string path;
  int64_t bytes = 0;  // from the manifest; 0 for the manifest
  absl::Status status;
};

// Reads the whole checkpoint and reports on the manifest, then on every file
// that it names, with the file's first damage. If all reports are OK,
// CheckpointReader can read every block. If the manifest is damaged, its report
// is the only one. `key`: as ReadManifest.
std::vector<FileReport> VerifyCheckpoint(const std::string& folder,
                                         const std::string& key = "");
bool IsWhole(const std::vector<FileReport>& reports);  // all are OK

}  // namespace tributary
