// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/files/page_format.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/files/file_status.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

constexpr int64_t kChecksumBytes = 4;

template <typename... Text>
absl::Status LossAt(const std::string& path, int64_t byte,
                    const Text&... text) {
  return absl::DataLossError(
      absl::StrCat(path, ": byte ", byte, ": ", text...));
}

// Compares what the manifest says of a file with what its pages give.
absl::Status CompareSums(const std::string& path, const FileSums& sums,
                         const FileSums& wanted) {
  if (sums.crc32c != wanted.crc32c) {
    return LossAt(path, 0, "every page is whole, but the file's checksum is ",
                  absl::Hex(sums.crc32c), ", the manifest says ",
                  absl::Hex(wanted.crc32c), ": it is another file");
  }
  if (!wanted.sha256.empty() && sums.sha256 != wanted.sha256) {
    return LossAt(path, 0, "its checksums fit, but its sha256 is ",
                  absl::BytesToHexString(sums.sha256), ", the manifest says ",
                  absl::BytesToHexString(wanted.sha256),
                  ": somebody has changed it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SizeError(const std::string& path, int64_t bytes,
                       uint64_t wanted) {
  const bool longer = static_cast<uint64_t>(bytes) > wanted;
  return LossAt(path, longer ? static_cast<int64_t>(wanted) : bytes,
                longer ? "the file goes on here, the manifest says it has "
                       : "the file is cut short: it ends here, the manifest "
                         "says it has ",
                wanted, " bytes");
}

absl::StatusOr<PageSource> PageSource::Open(const std::string& path,
                                            Comparing comparing) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.ok()) return FileError(path, "open", errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError(path, "stat", errno);
  if (!S_ISREG(info.st_mode)) {
    return LossAt(path, 0, "wants a regular file");
  }
  PageSource source(path, std::move(fd), {}, info.st_size);
  TRIBUTARY_RETURN_IF_ERROR(source.CheckSize());
  if (comparing != Comparing::kNothing) {
    source.checksum_ = std::make_shared<FileChecksum>(
        source.bytes(), comparing == Comparing::kDigest);
  }
  return source;
}

absl::StatusOr<PageSource> PageSource::Wrap(const std::string& name,
                                            absl::string_view bytes) {
  PageSource source(name, UniqueFd(), bytes,
                    static_cast<int64_t>(bytes.size()));
  TRIBUTARY_RETURN_IF_ERROR(source.CheckSize());
  return source;
}

absl::Status PageSource::CheckSize() const {
  const int64_t last = bytes_ % kPageBytes;
  if (bytes_ == 0 || (last > 0 && last <= kChecksumBytes)) {
    return LossAt(path_, bytes_, "the file is cut short: it ends here");
  }
  return absl::OkStatus();
}

absl::Status PageSource::ReadRaw(int64_t offset, std::string* bytes) const {
  if (!fd_.ok()) {
    std::memcpy(bytes->data(), memory_.data() + offset, bytes->size());
    return absl::OkStatus();
  }
  size_t done = 0;
  while (done < bytes->size()) {
    const int64_t at = offset + static_cast<int64_t>(done);
    const ssize_t got =
        pread(fd_.get(), bytes->data() + done, bytes->size() - done, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return LossAt(path_, at, "read: ", strerror(errno));
    if (got == 0) {
      return LossAt(path_, at, "the file ends here, it was longer when opened");
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status PageSource::ReadPage(int64_t page, PageBuffer* buffer) const {
  if (buffer->page == page) return absl::OkStatus();
  buffer->page = -1;
  const int64_t offset = page * kPageBytes;
  std::string& content = buffer->content;
  content.resize(static_cast<size_t>(std::min(kPageBytes, bytes_ - offset)));
  TRIBUTARY_RETURN_IF_ERROR(ReadRaw(offset, &content));
  uint32_t stored;
  const size_t size = content.size() - sizeof(stored);
  std::memcpy(&stored, content.data() + size, sizeof(stored));
  content.resize(size);
  const uint32_t checksum = PageChecksum(page, content);
  if (checksum != stored) {
    return LossAt(path_, offset, "the page from here to byte ",
                  offset + static_cast<int64_t>(size) + kChecksumBytes - 1,
                  " is damaged: its checksum is ", absl::Hex(checksum),
                  ", wanted ", absl::Hex(stored));
  }
  buffer->page = page;
  if (checksum_ != nullptr && !checksum_->Has(page)) {
    checksum_->Add(page, content, stored);
  }
  return absl::OkStatus();
}

absl::Status PageSource::Compare(const FileSums& sums) const {
  PageBuffer buffer;
  for (int64_t page = 0; page < num_pages(); ++page) {
    if (checksum_->Has(page)) continue;
    TRIBUTARY_RETURN_IF_ERROR(ReadPage(page, &buffer));
  }
  return CompareSums(path_, checksum_->Get(), sums);
}

absl::Status PageSource::Read(int64_t offset, void* data, size_t size,
                              PageBuffer* buffer) const {
  const int64_t end = content_bytes();
  if (offset < 0 || offset > end ||
      size > static_cast<uint64_t>(end - offset)) {
    return absl::OutOfRangeError(absl::StrCat(path_, ": wants ", size,
                                              " bytes of content from byte ",
                                              offset, ", it has ", end));
  }
  char* out = static_cast<char*>(data);
  while (size > 0) {
    TRIBUTARY_RETURN_IF_ERROR(ReadPage(offset / kPageContentBytes, buffer));
    const size_t skip = static_cast<size_t>(offset % kPageContentBytes);
    const size_t take = std::min(size, buffer->content.size() - skip);
    out = std::copy_n(buffer->content.data() + skip, take, out);
    offset += static_cast<int64_t>(take);
    size -= take;
  }
  return absl::OkStatus();
}

absl::StatusOr<PagedFile> PagedFile::Open(const std::string& path,
                                          PagedFileKind kind,
                                          Comparing comparing) {
  return Create(PageSource::Open(path, comparing), kind);
}

absl::StatusOr<PagedFile> PagedFile::Parse(const std::string& name,
                                           absl::string_view bytes,
                                           PagedFileKind kind) {
  return Create(PageSource::Wrap(name, bytes), kind);
}

absl::StatusOr<PagedFile> PagedFile::Create(absl::StatusOr<PageSource> source,
                                            PagedFileKind kind) {
  TRIBUTARY_RETURN_IF_ERROR(source.status());
  PagedFile file(*std::move(source));
  TRIBUTARY_RETURN_IF_ERROR(file.ReadFront(kind));
  return file;
}

absl::Status PagedFile::ReadFront(PagedFileKind kind) {
  PageBuffer buffer;
  TRIBUTARY_RETURN_IF_ERROR(source_.ReadPage(0, &buffer));
  ContentHeader header;
  if (source_.content_bytes() < int64_t{sizeof(header)}) {
    return LossAt(path(), 0, "wants a checkpoint file, got ", bytes(),
                  " bytes of something else");
  }
  TRIBUTARY_RETURN_IF_ERROR(source_.Read(0, &header, sizeof(header), &buffer));
  if (header.magic != kContentMagic) {
    return LossAt(path(), 0, "wants a checkpoint file, got something else");
  }
  if (header.version != kContentVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        path(), ": byte ", offsetof(ContentHeader, version),
        ": wants format version ", kContentVersion, ", got ", header.version));
  }
  if (header.kind != static_cast<uint32_t>(kind)) {
    return LossAt(path(), offsetof(ContentHeader, kind), "wants kind ",
                  static_cast<uint32_t>(kind), ", got ", header.kind);
  }
  TRIBUTARY_RETURN_IF_ERROR(
      CheckLengths(header.message_bytes, header.data_bytes));
  message_.resize(header.message_bytes);
  TRIBUTARY_RETURN_IF_ERROR(
      source_.Read(sizeof(header), message_.data(), message_.size(), &buffer));
  data_start_ = static_cast<int64_t>(sizeof(header) + header.message_bytes);
  data_bytes_ = static_cast<int64_t>(header.data_bytes);
  return absl::OkStatus();
}

absl::Status PagedFile::CheckLengths(uint64_t message_bytes,
                                     uint64_t data_bytes) const {
  const uint64_t there =
      static_cast<uint64_t>(source_.content_bytes()) - sizeof(ContentHeader);
  if (message_bytes > kMaxMessageBytes) {
    return LossAt(path(), offsetof(ContentHeader, message_bytes),
                  "wants a message of at most ", kMaxMessageBytes,
                  " bytes, got ", message_bytes);
  }
  if (message_bytes > there || data_bytes > there - message_bytes) {
    return LossAt(path(), bytes(),
                  "the file is cut short: it ends here, its header announces ",
                  message_bytes, " bytes of message and ", data_bytes,
                  " of data");
  }
  if (data_bytes < there - message_bytes) {
    return LossAt(path(), offsetof(ContentHeader, data_bytes), "announces ",
                  data_bytes, " bytes of data, the file holds ",
                  there - message_bytes);
  }
  return absl::OkStatus();
}

absl::Status PagedFile::MessageError(absl::string_view what) const {
  return LossAt(path(), sizeof(ContentHeader), what);
}

absl::Status VerifyPages(const std::string& path, uint64_t bytes,
                         const FileSums& sums) {
  TRIBUTARY_ASSIGN_OR_RETURN(const PageSource source, PageSource::Open(path));
  if (static_cast<uint64_t>(source.bytes()) != bytes) {
    return SizeError(path, source.bytes(), bytes);
  }
  PageBuffer buffer;
  absl::Status first;
  int64_t damaged = 0;
  FileChecksum checksum(source.bytes(), !sums.sha256.empty());
  for (int64_t page = 0; page < source.num_pages(); ++page) {
    const absl::Status status = source.ReadPage(page, &buffer);
    if (!status.ok()) {
      if (first.ok()) first = status;
      ++damaged;
      continue;
    }
    checksum.Add(page, buffer.content, PageChecksum(page, buffer.content));
  }
  if (damaged > 1) {
    return absl::DataLossError(
        absl::StrCat(first.message(), "; ", damaged - 1, " more page",
                     damaged == 2 ? "" : "s", " of ", source.num_pages()));
  }
  TRIBUTARY_RETURN_IF_ERROR(first);
  return CompareSums(path, checksum.Get(), sums);
}

}  // namespace tributary
