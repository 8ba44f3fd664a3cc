#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// A data file read from front to back, unpacked on the way when it is gzip
// (RFC 1952, any number of members). Everything in it may be wrong: errors are
// InvalidArgument and name the file and the offset in the unpacked data.
class InputFile {
 public:
  // NotFound and the like when it cannot be opened; only regular files.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);
  // Over bytes in memory, gzip or plain; `name` stands in messages.
  static absl::StatusOr<std::unique_ptr<InputFile>> OverBytes(
      std::string name, const std::string& bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Reads up to `size` bytes; fewer only where the data ends.
  absl::StatusOr<size_t> Read(size_t size, void* out);
  // Reads or skips exactly `size` bytes of `what`; an earlier end is an error.
  absl::Status ReadExactly(size_t size, void* out, const char* what);
  absl::Status Skip(size_t size, const char* what);
  // An error when more data follows.
  absl::Status ExpectEnd();
  // An error when the file cannot hold `size` more bytes, said before memory
  // for them is taken. Deflate packs at most 1032 bytes into one.
  absl::Status ExpectBacked(uint64_t size, const char* what) const;

  const std::string& name() const { return name_; }
  int64_t offset() const { return offset_; }  // in the unpacked data
  // "train.gz: offset 16: " + text.
  absl::Status Error(const std::string& text) const;

 private:
  InputFile(std::string name, int fd, uint64_t size);

  absl::Status Refill();  // more of the file into input_, if there is
  absl::Status BeginUnpacking();
  absl::StatusOr<size_t> ReadPlain(size_t size, uint8_t* out);
  absl::StatusOr<size_t> ReadPacked(size_t size, uint8_t* out);
  absl::Status NextMember();  // after the end of one
  size_t available() const { return input_.size() - position_; }

  const std::string name_;
  const int fd_;     // -1: everything is in input_
  uint64_t unread_;  // bytes of the file not yet in input_
  std::vector<uint8_t> input_;
  size_t position_ = 0;  // in input_
  int64_t offset_ = 0;
  bool packed_ = false;
  bool packed_end_ = false;  // the last member is complete
  z_stream stream_{};
};

}  // namespace tributary
