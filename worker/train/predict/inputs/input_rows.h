// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tributary/v1/preprocessing.pb.h"
#include "worker/train/data/raw_data.h"

namespace tributary {

// Reads the rows of a file, to which a trained model is applied, in batches, so
// that a file of any length needs the memory of one batch. Errors name the file
// and the row.
class InputRows {
 public:
  virtual ~InputRows() = default;

  // Returns the next rows, at most `most`, before normalization; no rows at the
  // end. They have targets if InputOptions::labels is set, else none (width 0).
  virtual absl::StatusOr<RawData> Next(int64_t most) = 0;

  // Which positions in Next's last row are new and come from the file; end -1
  // means all. The last samples of a text repeat positions of the sample
  // before, or are padded.
  struct Positions {
    int64_t begin = 0;
    int64_t end = -1;
  };
  virtual Positions last_positions() const { return {}; }

  // Messages for the user, once the end is reached.
  virtual std::vector<std::string> TakeWarnings() { return {}; }
};

struct InputOptions {
  std::string path;
  bool labels = false;      // read the targets, too
  std::string labels_path;  // for formats with labels in another file
  // Files whose rows follow those of `path`; for a text, its next parts.
  std::vector<std::string> more_paths;
  std::vector<std::string> more_labels;
  TargetKind kind = TargetKind::kClass;
  RowRange range;
  // A category that the training data do not have becomes a block of zeros,
  // with one warning for each column. If false, it is an error.
  bool allow_unknown = false;
  // Only for text. may_pad: a text shorter than a sample is padded at its end,
  // which in a causal model changes no earlier output; else it is an error.
  bool may_pad = false;
  int64_t stride = 0;  // 0: the length of a sample
  double begin = 0;
  double end = 1;
};

// Opens the file with the reader of the training data's format. A model that
// was trained on bytes of images or arrays reads both formats. Samples have the
// preprocessing's shape. `preprocessing` must outlive the result.
// InvalidArgument and NotFound name the file.
absl::StatusOr<std::unique_ptr<InputRows>> OpenInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options);

// The readers that OpenInput chooses from.
absl::StatusOr<std::unique_ptr<InputRows>> OpenCsvInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options);
absl::StatusOr<std::unique_ptr<InputRows>> OpenArrayInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options);
absl::StatusOr<std::unique_ptr<InputRows>> OpenTextInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options);
// The rows of several tables, one file at a time.
absl::StatusOr<std::unique_ptr<InputRows>> OpenChainedInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options);

// The offsets that are subtracted from the numbers of the rows (RawData).
std::vector<double> OffsetsOf(const v1::Preprocessing& preprocessing);

// Targets without rows, to which the rows of a batch are added.
Targets EmptyTargets(const v1::Preprocessing& preprocessing,
                     const InputOptions& options);

}  // namespace tributary
