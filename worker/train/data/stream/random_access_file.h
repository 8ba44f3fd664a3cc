// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A file that is read at any place, by any number of threads.
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

  explicit RandomAccessFile(std::string name) : name_(std::move(name)) {}
  virtual ~RandomAccessFile() = default;

  // Reads exactly `size` bytes. An error when the file ends before them.
  virtual absl::Status Read(int64_t offset, size_t size, void* out) const = 0;
  // The default never changes: for files that are not checked for changes.
  virtual absl::StatusOr<Stamp> ReadStamp() const { return Stamp(); }
  const std::string& name() const { return name_; }  // for messages

 private:
  const std::string name_;
};

// A file on disk. It stays open, so another file may take its name while the
// job trains. Read returns DataLoss when the file has become too short.
class DiskFile final : public RandomAccessFile {
 public:
  // Errors as in InputFile::Open.
  static absl::StatusOr<std::shared_ptr<const DiskFile>> Open(
      const std::string& path);
  // Takes over a file that has no name (ScratchFile).
  DiskFile(std::string name, UniqueFd fd)
      : RandomAccessFile(std::move(name)), fd_(std::move(fd)) {}

  absl::Status Read(int64_t offset, size_t size, void* out) const override;
  absl::StatusOr<Stamp> ReadStamp() const override;

 private:
  const UniqueFd fd_;
};

}  // namespace tributary
