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

  size_t size() const { return size_; }
  absl::Span<const Piece> pieces() const { return pieces_; }
  uint32_t Crc32c() const;
  void CopyTo(void* out) const;  // size() bytes

 private:
  std::vector<Piece> pieces_;
  std::shared_ptr<const void> owner_;
  size_t size_ = 0;
};

// Reads a payload front to back as floats. Pieces may begin and end at any
// byte; floats that cannot be read in place are copied to the caller's scratch
// memory.
class FloatReader {
 public:
  explicit FloatReader(const Payload& payload) : pieces_(payload.pieces()) {}

  // Returns the next n floats: in place if they are aligned within one piece,
  // else copied to `scratch` (room for n). n must not exceed the number that is
  // left.
  const float* Next(int64_t n, float* scratch);
  // Copies the next n floats to `out`.
  void CopyNext(int64_t n, float* out);

 private:
  absl::Span<const Payload::Piece> pieces_;
  size_t piece_ = 0;
  size_t at_ = 0;  // byte offset within the piece
};

// Index of the first NaN or infinity; -1 when there is none.
int64_t FirstNonFinite(const Payload& payload);

}  // namespace tributary
