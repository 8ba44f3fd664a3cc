// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary::testing {

// Finds the bytes of tensors in one direction of a gRPC connection. They are in
// large DATA frames (RFC 9113, section 4.1), after the message's header.
class Http2Tensors {
 public:
  // client: the direction from the client, which starts with the preface.
  explicit Http2Tensors(bool client) : skip_(client ? kPreface : 0) {}

  // Processes the next byte; true when it belongs to a tensor.
  bool Next(uint8_t byte) {
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    if (at_ < kHeader) {
      header_[at_++] = byte;
      if (at_ < kHeader) return false;
      length_ = header_[0] << 16 | header_[1] << 8 | header_[2];
      inside_ = 0;
      if (length_ == 0) at_ = 0;
      return false;
    }
    const size_t here = inside_++;
    if (inside_ == length_) at_ = 0;
    return header_[3] == 0 && here >= kMessageHeader && inside_ < length_;
  }

 private:
  static constexpr size_t kPreface = 24;
  static constexpr size_t kHeader = 9;
  static constexpr size_t kMessageHeader = 256;

  size_t skip_;
  uint8_t header_[kHeader] = {};
  size_t at_ = 0;  // frame header bytes received
  size_t length_ = 0;
  size_t inside_ = 0;
};

}  // namespace tributary::testing
