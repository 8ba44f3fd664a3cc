#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A file that is there whole or not at all: written aside in the same folder,
// brought to the disk, then renamed. Not committed, nothing of it stays. A file
// that stood under the name is replaced by Commit and untouched before.
class AtomicFile {
 public:
  // Errors of this class name the path and what the system said.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path);
  ~AtomicFile();

  absl::Status Append(const void* data, size_t size);
  absl::Status Append(absl::string_view text) {
    return Append(text.data(), text.size());
  }
  // After an error the file is not there; a Commit is the last call.
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string aside, UniqueFd fd)
      : path_(std::move(path)), aside_(std::move(aside)), fd_(std::move(fd)) {}

  const std::string path_;
  std::string aside_;  // where it is written; empty once committed
  UniqueFd fd_;
};

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents);

// Removes what writers that were killed have left aside in `folder`; nobody may
// be writing there.
void RemoveHalfWritten(const std::string& folder);

}  // namespace tributary
