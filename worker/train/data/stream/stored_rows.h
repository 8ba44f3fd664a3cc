// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "worker/train/data/raw_data.h"
#include "worker/train/data/stream/stored_records.h"

namespace tributary {

// The rows of a source that stay in their files, in the form in which a reader
// delivers rows in memory (RawData). Any number of threads may read. Notices
// when the values in the files change.
class StoredRows {
 public:
  struct Columns {
    // Properties that all rows share: name, feature_shape, widths,
    // byte_divisor, offsets, kind and width of the targets; for token sequences
    // also token_stride and num_tokens. Has the rounding of all rows if the
    // reader of the source knows it.
    RawData layout;
    // Numeric features; a record has the values of one row. If all values are
    // bytes, they become RawData's bytes, unless there are offsets or the
    // divisor is 0.
    std::optional<StoredRecords> features;
    bool offsets_are_off = false;  // offsets are already subtracted
    // One int32 for each categorical column: an index into code_places[column],
    // which has the code.
    std::optional<StoredRecords> codes;
    std::vector<std::vector<int32_t>> code_places;
    // Targets. If target_values is set, they are int32 indices into it.
    std::optional<StoredRecords> targets;
    std::vector<double> target_values;
    // Numbers may be NaN, which marks a missing value until Fill.
    bool may_miss = false;
    // Replaces missing values: one for each numeric feature.
    std::vector<double> fill;
    // For token sequences, used instead of all of the above: `tokens` has the
    // length + 1 tokens of each row, and `stream` the text, one token per
    // record. Both int32.
    std::optional<StoredRecords> tokens;
    std::optional<StoredRecords> stream;
  };

  // Reads all rows into memory. Errors as in Read.
  static absl::StatusOr<RawData> ReadAll(Columns columns);

  // Reads the first row. InvalidArgument when there is none.
  static absl::StatusOr<std::shared_ptr<const StoredRows>> Create(
      Columns columns);

  // Returns the same rows with `fill` in place of missing values. If `fill` is
  // empty, no value may be missing.
  absl::StatusOr<std::shared_ptr<const StoredRows>> Fill(
      const std::vector<double>& fill) const;

  int64_t rows() const { return rows_; }
  // The first row; all rows have its layout.
  const RawData& first_row() const { return first_row_; }
  // The size of one row in memory.
  int64_t row_bytes() const;

  // Reads the rows with these ascending numbers. InvalidArgument and DataLoss,
  // with the file and the row, for values that are not finite, labels that the
  // kind does not take, and files that have become shorter or have other values
  // since Checksum. If a file may have changed, reads all rows again, once.
  absl::StatusOr<RawData> Read(absl::Span<const int64_t> rows) const;

  // Reads all rows in their order, in parts of a few MiB. `first_row` is the
  // number of a part's first row.
  using Take =
      std::function<absl::Status(const RawData& part, int64_t first_row)>;
  absl::Status ForEachPart(const Take& take) const;

  // Returns the checksum that Dataset has for these rows in memory: the CRC-32C
  // of all values, array by array. Also finds values that Read refuses. Adds
  // the rounding of all rows to `rounded`.
  absl::StatusOr<uint32_t> Checksum(RawData* rounded) const;

 private:
  explicit StoredRows(Columns columns);

  // Reads all arrays of a source that is not a text.
  absl::Status ReadArrays(absl::Span<const int64_t> rows, RawData* data) const;
  // Each of these fills its part of `data` and leaves the other parts empty.
  absl::Status ReadFeatures(absl::Span<const int64_t> rows,
                            RawData* data) const;
  absl::Status ReadCodes(absl::Span<const int64_t> rows, RawData* data) const;
  absl::Status ReadTargets(absl::Span<const int64_t> rows, RawData* data) const;
  // Adds all values to a checksum, array by array and in parts. Calls
  // after(file, first row, part, checksum so far) for each part, and returns
  // its first error.
  using AfterPart =
      std::function<absl::Status(const StoredRecords& file, int64_t first,
                                 const RawData& part, uint32_t so_far)>;
  absl::StatusOr<uint32_t> AddAll(const AfterPart& after) const;
  absl::StatusOr<std::vector<RandomAccessFile::Stamp>> ReadStamps() const;
  // DataLoss when the files no longer have the values of Checksum.
  absl::Status CheckUnchanged() const;
  absl::Status Compare(const std::vector<uint32_t>& checksums) const;

  using FillPart = std::function<absl::Status(absl::Span<const int64_t> rows,
                                              RawData* data)>;
  // Fills consecutive rows, a part at a time.
  absl::Status InParts(int64_t count, int64_t bytes_of_one,
                       const FillPart& fill, const Take& take) const;

  const Columns columns_;
  const int64_t rows_;
  RawData first_row_;

  mutable absl::Mutex mu_;
  // The state of each file when its values last matched the checksums.
  mutable std::vector<RandomAccessFile::Stamp> stamps_ ABSL_GUARDED_BY(mu_);
  // The checksum after each part, as AddAll computes it; empty before Checksum.
  mutable std::vector<uint32_t> checksums_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
