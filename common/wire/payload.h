// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace tributary {

// Bytes as they came from the network: pieces in order, kept alive by an owner
// of any type. Copies share the bytes.
class Payload {
 public:
  using Piece = absl::Span<const char>;

  Payload() = default;
  Payload(std::vector<Piece> pieces, std::shared_ptr<const void> owner);

  // One piece that owns a copy of `data`.
  static Payload Copy(const void* data, size_t n);

  // The checksum and the finiteness of a payload, from one pass over its bytes.
  struct Scan {
    uint32_t crc32c = 0;           // of all bytes
    int64_t first_nonfinite = -1;  // index of the first NaN or infinity, or -1
  };

  size_t size() const { return size_; }
  absl::Span<const Piece> pieces() const { return pieces_; }
  Scan ScanFloats() const;
  void CopyTo(void* out) const;  // size() bytes

 private:
  std::vector<Piece> pieces_;
  std::shared_ptr<const void> owner_;
  size_t size_ = 0;
};

// Reads a payload front to back as floats. Pieces may begin and end at any
// byte, so a float that is read in place may lie at any address.
class FloatReader {
 public:
  explicit FloatReader(const Payload& payload) : pieces_(payload.pieces()) {}

  // Returns the next n floats: in place if they lie within one piece, else
  // copied to `scratch` (room for n). n must not exceed the number that is
  // left.
  const float* Next(int64_t n, float* scratch);
  // How many of the next floats Next can return in place.
  int64_t FloatsInPlace() {
    return static_cast<int64_t>(Here() / sizeof(float));
  }
  // Returns at most n of the next floats, as many as lie in one piece. A float
  // that lies in several is copied to `scratch` (room for one).
  absl::Span<const float> NextRun(int64_t n, float* scratch);
  // Copies the next n floats to `out` and returns `crc` extended by their
  // bytes (crc32c.h), which are read once.
  uint32_t CopyNext(int64_t n, float* out, uint32_t crc);

  // Copies the next bytes, which need not be whole floats.
  void Copy(size_t bytes, void* out);
  // Returns the next bytes: in place if they lie within one piece, else copied
  // to `scratch`.
  const char* NextBytes(size_t bytes, void* scratch);

 private:
  // Goes to the piece of the next byte and returns its bytes that are left; 0
  // at the end.
  size_t Here();

  absl::Span<const Payload::Piece> pieces_;
  size_t piece_ = 0;
  size_t at_ = 0;  // byte offset within the piece
};

}  // namespace tributary
