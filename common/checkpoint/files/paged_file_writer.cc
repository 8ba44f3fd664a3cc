// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/files/page_format.h"
#include "common/checkpoint/files/paged_file.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<PagedFileWriter>> PagedFileWriter::Create(
    const std::string& path, PagedFileKind kind, absl::string_view message,
    int64_t data_bytes, bool digests) {
  if (message.size() > PagedFile::kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": wants a message of at most ", PagedFile::kMaxMessageBytes,
        " bytes, got ", message.size()));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                             AtomicFile::Create(path));
  std::unique_ptr<PagedFileWriter> writer(
      new PagedFileWriter(path, std::move(file), data_bytes));
  writer->digests_ = digests;
  const ContentHeader header = {
      .kind = static_cast<uint32_t>(kind),
      .message_bytes = message.size(),
      .data_bytes = static_cast<uint64_t>(data_bytes)};
  TRIBUTARY_RETURN_IF_ERROR(writer->AppendContent(&header, sizeof(header)));
  TRIBUTARY_RETURN_IF_ERROR(
      writer->AppendContent(message.data(), message.size()));
  return writer;
}

absl::Status PagedFileWriter::Append(const void* data, size_t size) {
  if (size > static_cast<uint64_t>(missing_)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": wants ", missing_, " more bytes, got ", size));
  }
  missing_ -= static_cast<int64_t>(size);
  return AppendContent(data, size);
}

absl::Status PagedFileWriter::AppendContent(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const size_t room = static_cast<size_t>(kPageContentBytes) - page_.size();
    const size_t take = std::min(size, room);
    page_.append(next, take);
    next += take;
    size -= take;
    if (take == room) TRIBUTARY_RETURN_IF_ERROR(FlushPage());
  }
  return absl::OkStatus();
}

absl::Status PagedFileWriter::FlushPage() {
  const uint32_t checksum = PageChecksum(bytes_ / kPageBytes, page_);
  if (digests_) page_digests_.push_back(PageDigest(page_, checksum));
  page_.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  TRIBUTARY_RETURN_IF_ERROR(file_->Append(page_));
  bytes_ += static_cast<int64_t>(page_.size());
  crc32c_ = ExtendCrc32c(crc32c_, page_.data(), page_.size());
  page_.clear();
  return absl::OkStatus();
}

absl::Status PagedFileWriter::Commit() {
  if (missing_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", missing_, " bytes are missing"));
  }
  if (!page_.empty()) TRIBUTARY_RETURN_IF_ERROR(FlushPage());
  return file_->Commit();
}

std::string PagedFileWriter::sha256() const {
  return digests_ ? FileDigest(page_digests_) : "";
}

std::string ToPages(absl::string_view content) {
  std::string file;
  for (int64_t page = 0; !content.empty(); ++page) {
    const absl::string_view piece = content.substr(0, kPageContentBytes);
    const uint32_t checksum = PageChecksum(page, piece);
    file.append(piece.data(), piece.size());
    file.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    content.remove_prefix(piece.size());
  }
  return file;
}

}  // namespace tributary
