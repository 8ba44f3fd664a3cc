// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/unique_fd.h"
#include "common/checkpoint/files/file_sums.h"
#include "common/files/atomic_file.h"

namespace tributary {

// A checkpoint file consists of pages of 64 KiB; the last may be shorter. Each
// page ends with a checksum of its number and its other bytes, so every bit is
// covered and damage can be located. The pages' contents in sequence are a
// header with the total length, one message and the data
// (docs/checkpoints.md).
inline constexpr int64_t kPageBytes = 64 << 10;
inline constexpr int64_t kPageContentBytes = kPageBytes - 4;

enum class PagedFileKind : uint32_t {
  kManifest = 1,
  kShard = 2,
  kResidual = 3
};

// Writes one file, which appears, complete, with Commit. Errors as AtomicFile.
class PagedFileWriter {
 public:
  // `digests`: compute sha256(). InvalidArgument: the message is longer than
  // readers accept.
  static absl::StatusOr<std::unique_ptr<PagedFileWriter>> Create(
      const std::string& path, PagedFileKind kind, absl::string_view message,
      int64_t data_bytes, bool digests = false);

  // Appends the next bytes of the data. FailedPrecondition when they are too
  // many.
  absl::Status Append(const void* data, size_t size);
  // Completes the file. FailedPrecondition when bytes of the data are missing.
  absl::Status Commit();

  // Size and checksums of the whole file; valid after Commit.
  int64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc32c_; }
  std::string sha256() const;  // empty: not computed

 private:
  PagedFileWriter(std::string path, std::unique_ptr<AtomicFile> file,
                  int64_t missing)
      : path_(std::move(path)), file_(std::move(file)), missing_(missing) {}

  absl::Status AppendContent(const void* data, size_t size);
  absl::Status FlushPage();

  const std::string path_;
  const std::unique_ptr<AtomicFile> file_;
  int64_t missing_;   // bytes of data not appended yet
  std::string page_;  // not yet written
  int64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
  bool digests_ = false;
  std::vector<std::string> page_digests_;
};

// The page that was read last, so that the next Read does not read this page
// again. For one file and one thread at a time.
struct PageBuffer {
  int64_t page = -1;
  std::string content;
};

// Reads and checks the pages of a file, or of memory that outlives the object.
// Any number of threads may read.
class PageSource {
 public:
  // NotFound: there is no such file. DataLoss: it is not a regular file, or it
  // ends in the middle of a page.
  static absl::StatusOr<PageSource> Open(
      const std::string& path, Comparing comparing = Comparing::kNothing);
  static absl::StatusOr<PageSource> Wrap(const std::string& name,
                                         absl::string_view bytes);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }
  int64_t num_pages() const { return (bytes_ + kPageBytes - 1) / kPageBytes; }
  int64_t content_bytes() const { return bytes_ - 4 * num_pages(); }

  // Reads bytes of the content. DataLoss with the path and the page's first
  // byte when a checksum is wrong. OutOfRange when the content is too short.
  absl::Status Read(int64_t offset, void* data, size_t size,
                    PageBuffer* buffer) const;
  absl::Status ReadPage(int64_t page, PageBuffer* buffer) const;

  // Reads the pages not read so far, then compares the whole file with `sums`.
  // Open's `comparing` must cover what `sums` has. DataLoss: a sum differs.
  absl::Status Compare(const FileSums& sums) const;

 private:
  PageSource(std::string path, UniqueFd fd, absl::string_view memory,
             int64_t bytes)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        memory_(memory),
        bytes_(bytes) {}

  absl::Status CheckSize() const;
  absl::Status ReadRaw(int64_t offset, std::string* bytes) const;

  std::string path_;
  UniqueFd fd_;  // not set: the bytes are in memory_
  absl::string_view memory_;
  int64_t bytes_ = 0;
  std::shared_ptr<FileChecksum> checksum_;  // of the pages read; may be null
};

// A file of one kind, open for reading. Header and message are checked on
// opening, the data as it is read. Keeps the message and one page in memory.
class PagedFile {
 public:
  static constexpr int64_t kMaxMessageBytes = 64 << 20;

  // NotFound: there is no such file. DataLoss, with path and byte: it is not a
  // file of this kind, damaged or truncated. FailedPrecondition: a newer
  // version wrote it. `comparing`: allows Compare.
  static absl::StatusOr<PagedFile> Open(
      const std::string& path, PagedFileKind kind,
      Comparing comparing = Comparing::kNothing);
  // The same for a file in memory, which outlives the object; errors contain
  // `name`.
  static absl::StatusOr<PagedFile> Parse(const std::string& name,
                                         absl::string_view bytes,
                                         PagedFileKind kind);

  const std::string& path() const { return source_.path(); }
  int64_t bytes() const { return source_.bytes(); }
  const std::string& message() const { return message_; }
  int64_t data_bytes() const { return data_bytes_; }

  absl::Status ReadData(int64_t offset, void* data, size_t size,
                        PageBuffer* buffer) const {
    return source_.Read(data_start_ + offset, data, size, buffer);
  }

  // See PageSource::Compare.
  absl::Status Compare(const FileSums& sums) const {
    return source_.Compare(sums);
  }

  // Returns a DataLoss error at the message's position, for a message whose
  // content is impossible.
  absl::Status MessageError(absl::string_view what) const;

 private:
  explicit PagedFile(PageSource source) : source_(std::move(source)) {}
  static absl::StatusOr<PagedFile> Create(absl::StatusOr<PageSource> source,
                                          PagedFileKind kind);
  absl::Status ReadFront(PagedFileKind kind);
  absl::Status CheckLengths(uint64_t message_bytes, uint64_t data_bytes) const;

  PageSource source_;
  std::string message_;
  int64_t data_start_ = 0;  // offset within the content
  int64_t data_bytes_ = 0;
};

// Returns DataLoss: the file has `bytes` bytes, but its manifest says `wanted`.
absl::Status SizeError(const std::string& path, int64_t bytes, uint64_t wanted);

// Reads every byte of a file and compares it with the manifest's size and
// sums. DataLoss names the first damaged place and the number of further
// damaged pages.
absl::Status VerifyPages(const std::string& path, uint64_t bytes,
                         const FileSums& sums);

// Makes a file with this content and valid page checksums, for tests and
// fuzzing.
std::string ToPages(absl::string_view content);

}  // namespace tributary
