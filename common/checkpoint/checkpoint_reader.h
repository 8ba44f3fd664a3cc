#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/shard_file.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// A checkpoint open for reading, by any number of threads: its tensors, put
// together from whatever files they stand in. It holds its files open, so
// pruning does not disturb it.
//
// DataLoss, with the file and the byte, means that this checkpoint is damaged:
// take an older one.
class CheckpointReader {
 public:
  // Checks the manifest, the size and the index of every file, and that the
  // files hold every element once. The tensors are checked as they are read.
  // NotFound: the folder is no checkpoint, or a file is not there.
  // A reader may be one of `parts` that share the work of comparing the files'
  // checksums with the manifest's.
  struct Part {
    int part = 0;
    int parts = 0;  // 0: this reader compares none
  };
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder, Part part);
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      const std::string& folder) {
    return Open(folder, Part());
  }

  const std::string& folder() const { return folder_; }
  const v1::CheckpointManifest& manifest() const { return manifest_; }
  const ParameterSpecs& parameters() const { return parameters_; }
  const std::vector<std::string>& state_names() const { return state_names_; }

  // Elements from `begin` on of a parameter's weights (tensor 0) or of a state
  // (1 + its place in state_names()). OutOfRange when there are not so many.
  absl::Status ReadRange(int tensor, int parameter, int64_t begin,
                         absl::Span<float> values) const;

  // Reads what nobody has read yet of the files of this reader's part.
  // DataLoss: one has another checksum than its manifest says.
  absl::Status CompareChecksums() const;

 private:
  struct Piece {
    size_t file = 0;
    const ShardFile::Range* range = nullptr;
  };

  CheckpointReader(std::string folder, Part part)
      : folder_(std::move(folder)), part_(part) {}

  // Whether this reader compares the checksum of a file.
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
  std::vector<std::vector<Piece>> pieces_;  // by parameter, then in order
};

// What reading every byte of one file of a checkpoint says.
struct FileReport {
  std::string path;
  int64_t bytes = 0;  // as the manifest says; of the manifest itself 0
  absl::Status status;
};

// Reads all of a checkpoint: the manifest, then every file that it names, each
// with its first damage. All OK: CheckpointReader reads any block of it. When
// the manifest is damaged nothing is known of the files, and it alone comes.
std::vector<FileReport> VerifyCheckpoint(const std::string& folder);
bool IsWhole(const std::vector<FileReport>& reports);  // every one is OK

}  // namespace tributary
