// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/tensor.h"
#include "worker/train/data/batches/batch.h"
#include "worker/train/data/normalization.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/stream/stored_rows.h"

namespace tributary {

// Samples in memory or on disk, in the compact form of the source: image bytes
// stay bytes and a one-hot column stays a number until a batch is gathered.
// Immutable, so any number of threads may gather.
class Dataset {
 public:
  // Takes the data from a reader. `normalization` must fit raw.numeric_width
  // (ResolveNormalization).
  Dataset(RawData raw, const Normalization& normalization);
  // Makes a set of rows that stay on disk. Reads all of them once, for the
  // checksum; the error names the first value that cannot be used.
  static absl::StatusOr<std::unique_ptr<Dataset>> OnDisk(
      std::shared_ptr<const StoredRows> stored,
      const Normalization& normalization);

  int64_t rows() const { return stored_ ? stored_->rows() : raw_.rows; }
  bool on_disk() const { return stored_ != nullptr; }
  // Bytes of a sample in compact form. Only for a set on disk.
  int64_t row_bytes() const { return stored_->row_bytes(); }
  // The shape of one sample: {28, 28} for images, {features} for tables.
  const Shape& feature_shape() const { return raw_.feature_shape; }

  TargetKind target_kind() const { return raw_.targets.kind; }
  int64_t target_width() const { return raw_.targets.width; }
  // Token ids are below this number; 0 when samples are not token sequences.
  int64_t num_tokens() const { return raw_.num_tokens; }
  // The names of text classes, by class number; empty when the file has
  // numbers.
  const std::vector<std::string>& class_names() const {
    return raw_.targets.class_names;
  }
  // CRC-32C of all samples as the reader delivered them, and of their shape;
  // never 0. Equal for equal data, whatever its name.
  uint32_t checksum() const { return checksum_; }
  // The file or generator, for messages.
  const std::string& name() const { return raw_.name; }
  // The file of the targets, for messages.
  const std::string& target_name() const {
    return raw_.targets.name.empty() ? raw_.name : raw_.targets.name;
  }
  // How rounding to float32 has changed the numbers of each numeric column
  // (empty if it changed none), and the targets.
  const std::vector<Rounding>& rounding() const { return raw_.rounding; }
  const Rounding& target_rounding() const { return raw_.targets.rounding; }

  // InvalidArgument unless each sample has one target per output of a model
  // with this output shape: a number, or a class for each row of outputs.
  absl::Status CheckTargets(const Shape& outputs) const;

  // InvalidArgument, naming the place of the greatest label, when a label is
  // not below `classes` (the number of the model's outputs).
  absl::Status CheckClasses(int64_t classes) const;

  // Counts the labels of each of the first `classes` classes; for sequences,
  // counts the positions of all samples. Errors as in StoredRows::Read.
  absl::StatusOr<std::vector<int64_t>> CountClasses(int64_t classes) const;

  // InvalidArgument, naming the first sample, when a feature is not a token id
  // below `tokens` (the size of the model's embedding).
  absl::Status CheckTokens(int64_t tokens) const;

  // Fills out's rows, features, labels and targets with the given rows, in
  // their order. Other fields of `out` do not change. Rows are from 0 to rows()
  // - 1. Only for a set in memory.
  void Gather(absl::Span<const int64_t> rows, Batch* out) const;
  // Does the same for any set; if it is on disk, reads the rows first. Errors
  // as in StoredRows::Read.
  absl::Status Fetch(absl::Span<const int64_t> rows, Batch* out) const;
  // Reads rows of a set on disk into a set in memory, whose row i is rows[i].
  // `rows` ascend. Errors as in StoredRows::Read.
  absl::StatusOr<std::unique_ptr<const Dataset>> Load(
      absl::Span<const int64_t> rows) const;

 private:
  // The checksum is that of the whole set.
  Dataset(RawData raw, const Normalization& normalization, uint32_t checksum);

  // Calls check(set, first row) for the whole set in memory, or for parts of
  // the set on disk.
  using Check = std::function<absl::Status(const Dataset& part, int64_t first)>;
  absl::Status CheckParts(const Check& check) const;
  absl::Status CheckClasses(int64_t classes, int64_t first) const;
  absl::Status CheckTokens(int64_t tokens, int64_t first) const;
  void GatherBytes(int64_t row, float* out) const;
  void GatherNumbers(int64_t row, float* out) const;
  void GatherTokens(absl::Span<const int64_t> rows, Batch* out) const;

  // Numbers are already normalized, bytes are not. For a set on disk it has
  // only the first row, with the rounding of all rows.
  RawData raw_;
  int64_t feature_width_ = 0;
  const uint32_t checksum_;
  std::array<float, 256> byte_value_{};       // normalized if one_pair()
  Normalization byte_normalization_;          // per feature, or empty
  Normalization normalization_;               // for parts that are loaded
  std::shared_ptr<const StoredRows> stored_;  // null: in memory
};

}  // namespace tributary
