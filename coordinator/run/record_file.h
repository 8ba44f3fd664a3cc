// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A file to which whole records are appended in order. While the disk is full,
// records are kept in memory and written later; beyond a limit the oldest are
// dropped.
class RecordFile {
 public:
  // Opens or creates the file; an existing file is appended to.
  static absl::StatusOr<RecordFile> Open(std::string path, size_t max_kept);

  void Add(std::string record);
  // Writes the kept records. ResourceExhausted: the disk is full, retry later.
  // NotFound: the file was removed. All errors name the file.
  absl::Status Flush();

  // Waits until the written records are on the disk. Errors as Flush.
  absl::Status Sync();
  // The number of bytes written.
  absl::StatusOr<uint64_t> Size() const;

  bool keeps() const { return !kept_.empty(); }
  // Number of records that were dropped.
  int64_t given_up() const { return given_up_; }

 private:
  RecordFile(std::string path, UniqueFd fd, size_t max_kept)
      : path_(std::move(path)), fd_(std::move(fd)), max_kept_(max_kept) {}

  std::string path_;
  UniqueFd fd_;
  size_t max_kept_;               // bytes
  std::deque<std::string> kept_;  // the first without its written part
  size_t kept_bytes_ = 0;
  bool begun_ = false;  // the first is partly written
  int64_t given_up_ = 0;
};

}  // namespace tributary
