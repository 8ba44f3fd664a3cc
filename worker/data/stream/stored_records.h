// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A file on disk that is read at any place, by any number of threads. It stays
// open, so it may be replaced by another of its name while the job trains.
class RandomAccessFile {
 public:
  // A file's size and times. They change whenever its contents change, and also
  // when the file is renamed or touched.
  struct Stamp {
    int64_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;

    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  // Errors as in InputFile::Open.
  static absl::StatusOr<std::shared_ptr<const RandomAccessFile>> Open(
      const std::string& path);
  // Takes over a file that has no name (ScratchFile).
  RandomAccessFile(std::string name, UniqueFd fd)
      : name_(std::move(name)), fd_(std::move(fd)) {}

  // Reads exactly `size` bytes. DataLoss when the file ends before them.
  absl::Status Read(int64_t offset, size_t size, void* out) const;
  absl::StatusOr<Stamp> ReadStamp() const;
  const std::string& name() const { return name_; }  // for messages

 private:
  const std::string name_;
  const UniqueFd fd_;
};

// Records of one size that lie in one or several files: the rows of an array.
class StoredRecords {
 public:
  // Records of `record_bytes`; each begins `pitch` bytes after the one before,
  // so they overlap if pitch < record_bytes.
  StoredRecords(int64_t record_bytes, int64_t pitch)
      : record_bytes_(record_bytes), pitch_(pitch) {}
  explicit StoredRecords(int64_t record_bytes)
      : StoredRecords(record_bytes, record_bytes) {}

  // The next `count` records begin at `offset` of the file, with the one that
  // has the number `first` there.
  void Append(std::shared_ptr<const RandomAccessFile> file, int64_t offset,
              int64_t count, int64_t first = 0);

  int64_t count() const { return parts_.empty() ? 0 : parts_.back().end; }
  int64_t record_bytes() const { return record_bytes_; }

  // Reads records, whose numbers ascend and are below count(), to out[0],
  // out[record_bytes], ... Records that lie close together are read at once.
  absl::Status Read(absl::Span<const int64_t> records, uint8_t* out) const;
  // "x.npy: row 7": where a record lies, for messages.
  std::string Place(int64_t record) const;
  // "x.npy: rows 7 to 9", or "x.npy: row 7 to y.npy: row 2".
  std::string Places(int64_t first, int64_t last) const;
  // The stamps of all files, in order.
  absl::StatusOr<std::vector<RandomAccessFile::Stamp>> ReadStamps() const;

 private:
  struct Part {
    std::shared_ptr<const RandomAccessFile> file;
    int64_t offset = 0;  // of its first record
    int64_t begin = 0;   // the first record's number
    int64_t end = 0;
    int64_t first = 0;  // the first record's number in the file
  };

  const Part& PartOf(int64_t record) const;
  // Reads records of one part that lie close together.
  absl::Status ReadGroup(const Part& part, absl::Span<const int64_t> records,
                         std::vector<uint8_t>* scratch, uint8_t* out) const;

  int64_t record_bytes_;
  int64_t pitch_;
  std::vector<Part> parts_;
};

}  // namespace tributary
