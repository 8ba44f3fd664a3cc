// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/stream/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace tributary {

absl::StatusOr<std::shared_ptr<const DiskFile>> DiskFile::Open(
    const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": wanted a regular file"));
  }
  return std::make_shared<const DiskFile>(path, std::move(fd));
}

absl::StatusOr<RandomAccessFile::Stamp> DiskFile::ReadStamp() const {
  struct stat info;
  if (fstat(fd_.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name()));
  }
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return Stamp{.size = static_cast<int64_t>(info.st_size),
               .modified_ns = nanoseconds(info.st_mtim),
               .changed_ns = nanoseconds(info.st_ctim)};
}

absl::Status DiskFile::Read(int64_t offset, size_t size, void* out) const {
  auto* to = static_cast<uint8_t*>(out);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd_.get(), to + done, size - done,
                            offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name()));
    }
    if (n == 0) {
      return absl::DataLossError(
          absl::StrCat(name(), ": offset ", offset, ": wanted ", size,
                       " bytes, but the file ends after ", done,
                       "; it was longer when the job began"));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace tributary
