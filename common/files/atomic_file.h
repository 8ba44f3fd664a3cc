// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A file that appears whole or not at all. Its data goes to a temporary file in
// the same directory; Commit syncs that file and renames it, which replaces a
// file of the same name. Without Commit the temporary file is removed.
class AtomicFile {
 public:
  // Errors of this class name the path and the system's error. `mode`: the
  // file's permissions, less the process's mask.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path, unsigned int mode = 0666);
  // As Create, for a path that a user names. If the path is a device, a pipe or
  // a socket, the data is written into it, and it stays what it is.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> CreateOutput(
      const std::string& path);
  ~AtomicFile();

  absl::Status Append(const void* data, size_t size);
  absl::Status Append(absl::string_view text) {
    return Append(text.data(), text.size());
  }
  // The last call. After an error the file has not appeared, or it is complete
  // and only its folder could not be synced.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string aside, UniqueFd fd)
      : path_(std::move(path)), aside_(std::move(aside)), fd_(std::move(fd)) {}

  const std::string path_;
  std::string aside_;  // the temporary file's path; empty: there is none
  UniqueFd fd_;
};

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents);
// The same for a path that a user names (AtomicFile::CreateOutput).
absl::Status WriteOutput(const std::string& path, absl::string_view contents);

// Removes temporary files that killed writers left in `folder`. No process may
// be writing there.
void RemoveHalfWritten(const std::string& folder);

}  // namespace tributary
