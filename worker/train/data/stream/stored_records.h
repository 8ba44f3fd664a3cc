// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/train/data/readers/npy_header.h"
#include "worker/train/data/stream/random_access_file.h"

namespace tributary {

// Records of equal width in one or several files: the rows of an array. The
// values of each file have one type.
class StoredRecords {
 public:
  // Records of `width` values; each begins `pitch` values after the one before,
  // so they overlap if pitch < width.
  StoredRecords(int64_t width, int64_t pitch) : width_(width), pitch_(pitch) {}
  explicit StoredRecords(int64_t width) : StoredRecords(width, width) {}

  // Appends `count` records, which begin at `offset` of the file. The first of
  // them has the number `first` in that file.
  void Append(std::shared_ptr<const RandomAccessFile> file, NpyType type,
              int64_t offset, int64_t count, int64_t first = 0);

  int64_t count() const { return parts_.empty() ? 0 : parts_.back().end; }
  int64_t width() const { return width_; }
  bool holds_bytes() const;     // all values are of kUint8 or kBool
  bool holds_booleans() const;  // some are of kBool

  // Reads records, whose numbers ascend and are below count(). Calls take for
  // some of them at a time, in their order, and returns its first error.
  // Records that lie close together are read at once.
  using Take =
      std::function<absl::Status(NpyType type, absl::Span<const uint8_t>)>;
  absl::Status Read(absl::Span<const int64_t> records, const Take& take) const;
  // "x.npy: row 7": where a record lies, for messages.
  std::string Place(int64_t record) const;
  // "x.npy: rows 7 to 9", or "x.npy: row 7 to y.npy: row 2".
  std::string Places(int64_t first, int64_t last) const;
  // The stamps of all files, in order.
  absl::StatusOr<std::vector<RandomAccessFile::Stamp>> ReadStamps() const;

 private:
  struct Part {
    std::shared_ptr<const RandomAccessFile> file;
    NpyType type = NpyType::kFloat32;
    int64_t offset = 0;  // of its first record
    int64_t begin = 0;   // the first record's number
    int64_t end = 0;
    int64_t first = 0;  // the first record's number in the file
  };

  const Part& PartOf(int64_t record) const;
  // Reads records of one part that lie close together, with the bytes between
  // them if there are any.
  absl::Status ReadGroup(const Part& part, absl::Span<const int64_t> records,
                         std::vector<uint8_t>* bytes) const;

  int64_t width_;
  int64_t pitch_;
  std::vector<Part> parts_;
};

}  // namespace tributary
