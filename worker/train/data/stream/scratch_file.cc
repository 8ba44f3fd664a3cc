// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

// Not /tmp, which is often in memory: such a file is meant to save memory.
std::string Folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/var/tmp";
}

// O_TMPFILE where the file system has it, otherwise a file that is removed at
// once.
UniqueFd OpenNameless(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.ok() || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = absl::StrCat(folder, "/tributary-rows-XXXXXX");
  UniqueFd named(mkostemp(path.data(), O_CLOEXEC));
  if (named.ok()) unlink(path.c_str());
  return named;
}

}  // namespace

ScratchFile::ScratchFile(std::string name, std::string folder, UniqueFd fd)
    : name_(std::move(name)), folder_(std::move(folder)), fd_(std::move(fd)) {}

absl::StatusOr<ScratchFile> ScratchFile::Create(std::string name) {
  std::string folder = Folder();
  UniqueFd fd = OpenNameless(folder);
  if (!fd.ok()) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(name, ": cannot keep its rows in ", folder,
                            " (TMPDIR names another folder)"));
  }
  return ScratchFile(std::move(name), std::move(folder), std::move(fd));
}

absl::Status ScratchFile::Append(const void* data, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  buffer_.insert(buffer_.end(), from, from + size);
  size_ += static_cast<int64_t>(size);
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status ScratchFile::Flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n =
        write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat(name_, ": cannot keep its rows in ", folder_,
                              " (TMPDIR names another folder)"));
    }
    done += static_cast<size_t>(n);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RandomAccessFile>> ScratchFile::Finish() {
  TRIBUTARY_RETURN_IF_ERROR(Flush());
  return std::make_shared<const DiskFile>(name_, std::move(fd_));
}

}  // namespace tributary
