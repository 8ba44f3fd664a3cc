// SPDX-License-Identifier: Apache-2.0
#include "worker/data/stream/stored_records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

// Records with at most so many bytes between them are read at once: reading the
// bytes between them costs less than another call.
constexpr int64_t kMostGap = 32 << 10;
constexpr int64_t kMostRead = 1 << 20;

}  // namespace

absl::StatusOr<std::shared_ptr<const RandomAccessFile>> RandomAccessFile::Open(
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
  return std::make_shared<const RandomAccessFile>(path, std::move(fd));
}

absl::StatusOr<RandomAccessFile::Stamp> RandomAccessFile::ReadStamp() const {
  struct stat info;
  if (fstat(fd_.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name_));
  }
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return Stamp{.size = static_cast<int64_t>(info.st_size),
               .modified_ns = nanoseconds(info.st_mtim),
               .changed_ns = nanoseconds(info.st_ctim)};
}

absl::Status RandomAccessFile::Read(int64_t offset, size_t size,
                                    void* out) const {
  auto* to = static_cast<uint8_t*>(out);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(fd_.get(), to + done, size - done,
                            offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name_));
    }
    if (n == 0) {
      return absl::DataLossError(
          absl::StrCat(name_, ": offset ", offset, ": wanted ", size,
                       " bytes, but the file ends after ", done,
                       "; it was longer when the job began"));
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

void StoredRecords::Append(std::shared_ptr<const RandomAccessFile> file,
                           int64_t offset, int64_t count, int64_t first) {
  const int64_t begin = this->count();
  parts_.push_back({std::move(file), offset, begin, begin + count, first});
}

const StoredRecords::Part& StoredRecords::PartOf(int64_t record) const {
  TRIBUTARY_CHECK(record >= 0 && record < count());
  return *std::upper_bound(
      parts_.begin(), parts_.end(), record,
      [](int64_t number, const Part& part) { return number < part.end; });
}

std::string StoredRecords::Place(int64_t record) const {
  const Part& part = PartOf(record);
  return absl::StrCat(part.file->name(), ": row ",
                      part.first + record - part.begin);
}

std::string StoredRecords::Places(int64_t first, int64_t last) const {
  const Part& part = PartOf(first);
  if (last >= part.end) return absl::StrCat(Place(first), " to ", Place(last));
  return absl::StrCat(part.file->name(), ": rows ",
                      part.first + first - part.begin, " to ",
                      part.first + last - part.begin);
}

absl::StatusOr<std::vector<RandomAccessFile::Stamp>> StoredRecords::ReadStamps()
    const {
  std::vector<RandomAccessFile::Stamp> stamps;
  for (const Part& part : parts_) {
    TRIBUTARY_ASSIGN_OR_RETURN(stamps.emplace_back(), part.file->ReadStamp());
  }
  return stamps;
}

absl::Status StoredRecords::ReadGroup(const Part& part,
                                      absl::Span<const int64_t> records,
                                      std::vector<uint8_t>* scratch,
                                      uint8_t* out) const {
  const int64_t first = records.front();
  const int64_t span = (records.back() - first) * pitch_ + record_bytes_;
  const int64_t offset = part.offset + (first - part.begin) * pitch_;
  if (span == record_bytes_ * static_cast<int64_t>(records.size()) &&
      pitch_ == record_bytes_) {
    return part.file->Read(offset, span, out);
  }
  scratch->resize(span);
  TRIBUTARY_RETURN_IF_ERROR(part.file->Read(offset, span, scratch->data()));
  for (int64_t record : records) {
    std::memcpy(out, scratch->data() + (record - first) * pitch_,
                record_bytes_);
    out += record_bytes_;
  }
  return absl::OkStatus();
}

absl::Status StoredRecords::Read(absl::Span<const int64_t> records,
                                 uint8_t* out) const {
  std::vector<uint8_t> scratch;
  for (size_t begin = 0; begin < records.size();) {
    const Part& part = PartOf(records[begin]);
    size_t end = begin + 1;
    while (end < records.size() && records[end] < part.end) {
      TRIBUTARY_CHECK(records[end] > records[end - 1]);
      const int64_t gap =
          (records[end] - records[end - 1]) * pitch_ - record_bytes_;
      const int64_t span = (records[end] - records[begin]) * pitch_;
      if (gap > kMostGap || span + record_bytes_ > kMostRead) break;
      ++end;
    }
    TRIBUTARY_RETURN_IF_ERROR(
        ReadGroup(part, records.subspan(begin, end - begin), &scratch, out));
    out += static_cast<int64_t>(end - begin) * record_bytes_;
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace tributary
