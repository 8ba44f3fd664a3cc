// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

// Reads a data file front to back and decompresses it if it is gzip (RFC 1952,
// any number of members). The contents are not trusted: errors are
// InvalidArgument and name the file and the offset in the decompressed data.
class InputFile {
 public:
  // NotFound or another error when it cannot be opened. Accepts only regular
  // files.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);
  // Reads from bytes in memory, gzip or plain. `name` is for messages.
  static absl::StatusOr<std::unique_ptr<InputFile>> OverBytes(
      std::string name, const std::string& bytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Reads up to `size` bytes; fewer only at the end of the data.
  absl::StatusOr<size_t> Read(size_t size, void* out);
  // Reads or skips exactly `size` bytes of `what`; an earlier end is an error.
  absl::Status ReadExactly(size_t size, void* out, const char* what);
  absl::Status Skip(size_t size, const char* what);
  // The next bytes, for a message about what the file looks like.
  std::string ReadSome();
  // An error when more data follows.
  absl::Status ExpectEnd();
  // An error when the file cannot hold `size` more bytes. Call it before
  // allocating memory for them. Deflate compresses at most 1032 bytes into one.
  absl::Status ExpectBacked(uint64_t size, const char* what) const;

  const std::string& name() const { return name_; }
  bool packed() const { return packed_; }     // by gzip
  int64_t offset() const { return offset_; }  // in the decompressed data
  // InvalidArgument with the text "train.gz: offset 16: " + text.
  absl::Status Error(const std::string& text) const;

 private:
  InputFile(std::string name, int fd, uint64_t size);

  absl::Status Refill();  // reads more of the file into input_, if any is left
  absl::Status BeginUnpacking();
  absl::StatusOr<size_t> ReadPlain(size_t size, uint8_t* out);
  absl::StatusOr<size_t> ReadPacked(size_t size, uint8_t* out);
  absl::Status NextMember();  // called at the end of a gzip member
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
