#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/unique_fd.h"

namespace tributary {

// A file that records are added to, in order and whole. While the disk is full
// they are kept, and written when there is room again; of too many the oldest
// are given up.
class RecordFile {
 public:
  // A file that is there is continued.
  static absl::StatusOr<RecordFile> Open(std::string path, size_t max_kept);

  void Add(std::string record);
  // Writes what is kept. ResourceExhausted: the disk is full, try again later.
  // NotFound: somebody has removed the file. Other errors name it, too.
  absl::Status Flush();

  bool keeps() const { return !kept_.empty(); }
  // Records that are missing in the file for good.
  int64_t given_up() const { return given_up_; }

 private:
  RecordFile(std::string path, UniqueFd fd, size_t max_kept)
      : path_(std::move(path)), fd_(std::move(fd)), max_kept_(max_kept) {}

  std::string path_;
  UniqueFd fd_;
  size_t max_kept_;               // bytes
  std::deque<std::string> kept_;  // of the first the rest that is not written
  size_t kept_bytes_ = 0;
  bool begun_ = false;  // the first is written in part
  int64_t given_up_ = 0;
};

}  // namespace tributary
