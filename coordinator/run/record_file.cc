// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/file_status.h"

namespace tributary {
namespace {

// Bytes per write call: several records together, because a thousand steps a
// second give a thousand lines.
constexpr size_t kMaxWrite = 1 << 20;

}  // namespace

absl::StatusOr<RecordFile> RecordFile::Open(std::string path, size_t max_kept) {
  UniqueFd fd(
      open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
  if (!fd.ok()) return FileError(path, "create", errno);
  return RecordFile(std::move(path), std::move(fd), max_kept);
}

absl::Status RecordFile::Sync() {
  return fdatasync(fd_.get()) == 0 ? absl::OkStatus()
                                   : FileError(path_, "fsync", errno);
}

absl::StatusOr<uint64_t> RecordFile::Size() const {
  struct stat file {};
  if (fstat(fd_.get(), &file) != 0) return FileError(path_, "stat", errno);
  return static_cast<uint64_t>(file.st_size);
}

void RecordFile::Add(std::string record) {
  if (record.empty()) return;
  kept_bytes_ += record.size();
  kept_.push_back(std::move(record));
  // A record that has been written in part must be completed, so it is not
  // given up.
  while (kept_bytes_ > max_kept_ && kept_.size() > (begun_ ? 2u : 1u)) {
    const auto oldest = kept_.begin() + (begun_ ? 1 : 0);
    kept_bytes_ -= oldest->size();
    kept_.erase(oldest);
    ++given_up_;
  }
}

absl::Status RecordFile::Flush() {
  struct stat file {};
  if (fstat(fd_.get(), &file) == 0 && file.st_nlink == 0) {
    return absl::NotFoundError(
        absl::StrCat(path_, " was removed while the job was running"));
  }
  while (!kept_.empty()) {
    std::string bytes;
    for (const std::string& record : kept_) {
      if (!bytes.empty() && bytes.size() + record.size() > kMaxWrite) break;
      bytes += record;
    }
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path_, "write", errno);
    auto left = static_cast<size_t>(written);
    kept_bytes_ -= left;
    while (left > 0 && left >= kept_.front().size()) {
      left -= kept_.front().size();
      kept_.pop_front();
      begun_ = false;
    }
    if (left > 0) {
      kept_.front().erase(0, left);
      begun_ = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary
