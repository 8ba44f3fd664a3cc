// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "worker/train/data/stream/random_access_file.h"

namespace tributary {

// A file without a name, for rows whose own file does not allow reading at any
// place: packed files, tables and texts. It lies in TMPDIR, or in /var/tmp, and
// vanishes with the process. For one thread at a time.
class ScratchFile {
 public:
  // `name` is the file that the rows come from, for messages.
  static absl::StatusOr<ScratchFile> Create(std::string name);

  // ResourceExhausted, naming the folder, when the disk is full.
  absl::Status Append(const void* data, size_t size);
  int64_t size() const { return size_; }

  // The file for reading. Nothing may be appended afterwards.
  absl::StatusOr<std::shared_ptr<const RandomAccessFile>> Finish();

 private:
  ScratchFile(std::string name, std::string folder, UniqueFd fd);

  absl::Status Flush();

  std::string name_;
  std::string folder_;
  UniqueFd fd_;
  std::vector<uint8_t> buffer_;
  int64_t size_ = 0;
};

}  // namespace tributary
