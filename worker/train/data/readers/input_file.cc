// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/readers/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr uint64_t kMaxDeflateRatio = 1032;  // zlib's technical notes

bool StartsWithGzipMagic(const uint8_t* data, size_t size) {
  return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

}  // namespace

InputFile::InputFile(std::string name, int fd, uint64_t size)
    : name_(std::move(name)), fd_(fd), unread_(size) {}

InputFile::~InputFile() {
  if (packed_) inflateEnd(&stream_);
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": wanted a regular file"));
  }
  std::unique_ptr<InputFile> file(
      new InputFile(path, fd, static_cast<uint64_t>(info.st_size)));
  TRIBUTARY_RETURN_IF_ERROR(file->Refill());
  TRIBUTARY_RETURN_IF_ERROR(file->BeginUnpacking());
  return file;
}

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::OverBytes(
    std::string name, const std::string& bytes) {
  std::unique_ptr<InputFile> file(new InputFile(std::move(name), -1, 0));
  file->input_.assign(bytes.begin(), bytes.end());
  TRIBUTARY_RETURN_IF_ERROR(file->BeginUnpacking());
  return file;
}

absl::Status InputFile::Error(const std::string& text) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": offset ", offset_, ": ", text));
}

absl::Status InputFile::BeginUnpacking() {
  if (!StartsWithGzipMagic(input_.data(), input_.size())) {
    return absl::OkStatus();
  }
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, ": no memory to unpack gzip"));
  }
  packed_ = true;
  return absl::OkStatus();
}

absl::Status InputFile::Refill() {
  if (available() > 0 || unread_ == 0) return absl::OkStatus();
  input_.resize(std::min<uint64_t>(kInputBytes, unread_));
  position_ = 0;
  size_t filled = 0;
  while (filled < input_.size()) {
    const ssize_t n = read(fd_, input_.data() + filled, input_.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name_));
    }
    if (n == 0) break;  // the file became shorter while it was read
    filled += static_cast<size_t>(n);
  }
  unread_ = filled < input_.size() ? 0 : unread_ - filled;
  input_.resize(filled);
  return absl::OkStatus();
}

absl::StatusOr<size_t> InputFile::Read(size_t size, void* out) {
  uint8_t* to = static_cast<uint8_t*>(out);
  auto read = packed_ ? ReadPacked(size, to) : ReadPlain(size, to);
  if (read.ok()) offset_ += static_cast<int64_t>(*read);
  return read;
}

absl::StatusOr<size_t> InputFile::ReadPlain(size_t size, uint8_t* out) {
  size_t done = 0;
  while (done < size) {
    TRIBUTARY_RETURN_IF_ERROR(Refill());
    const size_t part = std::min(size - done, available());
    if (part == 0) break;
    std::memcpy(out + done, input_.data() + position_, part);
    position_ += part;
    done += part;
  }
  return done;
}

absl::StatusOr<size_t> InputFile::ReadPacked(size_t size, uint8_t* out) {
  constexpr size_t kMaxPart = 1u << 30;  // zlib counts in 32 bits
  size_t done = 0;
  while (done < size && !packed_end_) {
    TRIBUTARY_RETURN_IF_ERROR(Refill());
    const size_t in = std::min(available(), kMaxPart);
    const size_t room = std::min(size - done, kMaxPart);
    stream_.next_in = input_.data() + position_;
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = out + done;
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    position_ += in - stream_.avail_in;
    done += room - stream_.avail_out;
    if (result == Z_STREAM_END) {
      TRIBUTARY_RETURN_IF_ERROR(NextMember());
    } else if (result == Z_BUF_ERROR && in == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          name_, ": the gzip data is cut off (",
          offset_ + static_cast<int64_t>(done), " bytes could be unpacked)"));
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(absl::StrCat(
          name_, ": the gzip data is damaged after ",
          offset_ + static_cast<int64_t>(done), " unpacked bytes: ",
          stream_.msg != nullptr ? stream_.msg : zError(result)));
    }
  }
  return done;
}

absl::Status InputFile::NextMember() {
  TRIBUTARY_RETURN_IF_ERROR(Refill());
  if (available() == 0) {
    packed_end_ = true;
    return absl::OkStatus();
  }
  // Checks only the first byte: the second may not be in input_ yet, and
  // inflate checks both.
  if (input_[position_] != 0x1f || inflateReset(&stream_) != Z_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": ", available() + unread_,
                     " bytes that are not gzip follow ", "the gzip data"));
  }
  return absl::OkStatus();
}

absl::Status InputFile::ReadExactly(size_t size, void* out, const char* what) {
  const int64_t start = offset_;
  TRIBUTARY_ASSIGN_OR_RETURN(const size_t read, Read(size, out));
  if (read == size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": offset ", start, ": wanted ", size, " bytes of ",
                   what, ", but the data ends after ", read));
}

std::string InputFile::ReadSome() {
  std::string bytes(64, '\0');
  const absl::StatusOr<size_t> read = Read(bytes.size(), bytes.data());
  bytes.resize(read.value_or(0));
  return bytes;
}

absl::Status InputFile::Skip(size_t size, const char* what) {
  std::vector<uint8_t> scratch(std::min(size, kInputBytes));
  while (size > 0) {
    const size_t part = std::min(size, scratch.size());
    TRIBUTARY_RETURN_IF_ERROR(ReadExactly(part, scratch.data(), what));
    size -= part;
  }
  return absl::OkStatus();
}

absl::Status InputFile::ExpectEnd() {
  uint8_t byte;
  const int64_t end = offset_;
  TRIBUTARY_ASSIGN_OR_RETURN(const size_t read, Read(1, &byte));
  if (read == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": offset ", end, ": wanted the end, but more ",
                   "follows than the header announces"));
}

absl::Status InputFile::ExpectBacked(uint64_t size, const char* what) const {
  uint64_t bound = available() + unread_;
  // zlib's window may still hold the output of a few consumed bytes.
  if (packed_) bound = (bound + 64) * kMaxDeflateRatio;
  if (size <= bound) return absl::OkStatus();
  return Error(absl::StrCat("the header announces ", size, " bytes of ", what,
                            ", but the file holds at most ", bound));
}

}  // namespace tributary
