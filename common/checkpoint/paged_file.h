#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/run/atomic_file.h"
#include "common/run/unique_fd.h"

namespace tributary {

// The files of a checkpoint are cut into pages of 64 KiB, the last one shorter.
// A page ends in the checksum of its number and its other bytes, so every bit
// of a file stands under one, and a wrong bit is found at its place. What the
// pages hold one after the other, the content, is a header that says how long
// all of it is, one message, and the data (docs/formats.md#checkpoints).
inline constexpr int64_t kPageBytes = 64 << 10;
inline constexpr int64_t kPageContentBytes = kPageBytes - 4;

enum class PagedFileKind : uint32_t { kManifest = 1, kShard = 2 };

// Writes one file; it appears with Commit, whole. Errors as AtomicFile.
class PagedFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<PagedFileWriter>> Create(
      const std::string& path, PagedFileKind kind, absl::string_view message,
      int64_t data_bytes);

  // The next bytes of the data.
  absl::Status Append(const void* data, size_t size);
  // FailedPrecondition when bytes are missing or too many.
  absl::Status Commit();

  // After Commit: of the whole file.
  int64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc32c_; }

 private:
  PagedFileWriter(std::string path, std::unique_ptr<AtomicFile> file,
                  int64_t missing)
      : path_(std::move(path)), file_(std::move(file)), missing_(missing) {}

  absl::Status AppendContent(const void* data, size_t size);
  absl::Status FlushPage();

  const std::string path_;
  const std::unique_ptr<AtomicFile> file_;
  int64_t missing_;  // bytes of data still to come
  std::string page_;
  int64_t bytes_ = 0;
  uint32_t crc32c_ = 0;
};

// The page that was read last; reading on from there does not read it again.
// Belongs to one reader and one file.
struct PageBuffer {
  int64_t page = -1;
  std::string content;
};

// A file open for reading. Opening checks the pages of header and message; the
// others are checked when they are read. Memory: the message and one page.
class PagedFile {
 public:
  // NotFound: there is none. DataLoss, with the path and the byte: it is no
  // file of this kind, or it is damaged or cut short. FailedPrecondition: it
  // was written by a newer version.
  static absl::StatusOr<PagedFile> Open(const std::string& path,
                                        PagedFileKind kind);
  // The same for a file in memory, which outlives the object.
  static absl::StatusOr<PagedFile> Parse(const std::string& name,
                                         absl::string_view bytes,
                                         PagedFileKind kind);

  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }
  int64_t data_bytes() const { return data_bytes_; }
  int64_t bytes() const { return bytes_; }

  // DataLoss as Open; OutOfRange when the data ends before.
  absl::Status ReadData(int64_t offset, void* data, size_t size,
                        PageBuffer* buffer) const;

  // Where the content's byte stands in the file.
  static int64_t FileOffset(int64_t content_offset) {
    return content_offset / kPageContentBytes * kPageBytes +
           content_offset % kPageContentBytes;
  }
  int64_t data_offset() const { return FileOffset(data_start_); }

 private:
  PagedFile(std::string path, UniqueFd fd, absl::string_view memory,
            int64_t bytes)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        memory_(memory),
        bytes_(bytes) {}

  absl::Status ReadFront(PagedFileKind kind);
  absl::Status ReadContent(int64_t offset, void* data, size_t size,
                           PageBuffer* buffer) const;
  absl::Status ReadPage(int64_t page, PageBuffer* buffer) const;

  std::string path_;
  UniqueFd fd_;  // or, without one,
  absl::string_view memory_;
  int64_t bytes_ = 0;  // of the file
  int64_t content_bytes_ = 0;
  std::string message_;
  int64_t data_start_ = 0;  // within the content
  int64_t data_bytes_ = 0;
};

// Reads every byte and compares with what the manifest says of the file.
// DataLoss names the first place and how many pages more are damaged.
absl::Status VerifyFile(const std::string& path, int64_t bytes,
                        uint32_t crc32c);

// The pages of any content, for tests and fuzzing.
std::string ToPages(absl::string_view content);

}  // namespace tributary
