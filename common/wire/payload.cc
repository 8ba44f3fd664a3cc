// SPDX-License-Identifier: Apache-2.0
#include "common/wire/payload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/clones.h"
#include "common/wire/crc32c/crc32c.h"

namespace tributary {

Payload::Payload(std::vector<Piece> pieces, std::shared_ptr<const void> owner)
    : pieces_(std::move(pieces)), owner_(std::move(owner)) {
  for (const Piece& piece : pieces_) size_ += piece.size();
}

Payload Payload::Copy(const void* data, size_t n) {
  auto bytes = std::make_shared<std::string>(static_cast<const char*>(data), n);
  const Piece piece(bytes->data(), bytes->size());
  return Payload({piece}, std::move(bytes));
}

void Payload::CopyTo(void* out) const {
  auto* at = static_cast<char*>(out);
  for (const Piece& piece : pieces_) {
    at = std::copy(piece.begin(), piece.end(), at);
  }
}

size_t FloatReader::Here() {
  while (piece_ < pieces_.size() && at_ == pieces_[piece_].size()) {
    ++piece_;
    at_ = 0;
  }
  return piece_ < pieces_.size() ? pieces_[piece_].size() - at_ : 0;
}

void FloatReader::Copy(size_t bytes, void* out) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const size_t take = std::min(bytes, Here());
    TRIBUTARY_CHECK(take > 0);
    std::memcpy(to, pieces_[piece_].data() + at_, take);
    to += take;
    at_ += take;
    bytes -= take;
  }
}

const char* FloatReader::NextBytes(size_t bytes, void* scratch) {
  if (Here() < bytes) {
    Copy(bytes, scratch);
    return static_cast<const char*>(scratch);
  }
  const char* const here = pieces_[piece_].data() + at_;
  at_ += bytes;
  return here;
}

const float* FloatReader::Next(int64_t n, float* scratch) {
  return reinterpret_cast<const float*>(
      NextBytes(static_cast<size_t>(n) * sizeof(float), scratch));
}

absl::Span<const float> FloatReader::NextRun(int64_t n, float* scratch) {
  const int64_t count = std::min(n, std::max<int64_t>(FloatsInPlace(), 1));
  return {Next(count, scratch), static_cast<size_t>(count)};
}

namespace {

// Floats that stay in the first-level cache between their two uses. Their bytes
// are a multiple of what three lanes of the CRC instruction take (crc32c.cc),
// because the bytes left over would take three times as long.
constexpr int64_t kPart = 4608;

}  // namespace

uint32_t FloatReader::CopyNext(int64_t n, float* out, uint32_t crc) {
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const size_t bytes = sizeof(float) * std::min(kPart, n - begin);
    Copy(bytes, out + begin);
    crc = ExtendCrc32c(crc, out + begin, bytes);
  }
  return crc;
}

namespace {

// Only NaNs and infinities have all exponent bits set. The loop has no branch,
// so that it is vectorized.
TRIBUTARY_CLONES bool AnyNonFinite(const UnalignedFloat* x, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    found |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent;
  }
  return found != 0;
}

}  // namespace

Payload::Scan Payload::ScanFloats() const {
  Scan scan;
  FloatReader reader(*this);
  const auto n = static_cast<int64_t>(size_ / sizeof(float));
  for (int64_t begin = 0; begin < n;) {
    float scratch = 0;
    const absl::Span<const float> run =
        reader.NextRun(std::min(kPart, n - begin), &scratch);
    scan.crc32c =
        ExtendCrc32c(scan.crc32c, run.data(), run.size() * sizeof(float));
    const UnalignedFloat* const x = run.data();
    const auto count = static_cast<int64_t>(run.size());
    if (scan.first_nonfinite < 0 && AnyNonFinite(x, count)) {
      int64_t at = 0;
      for (float value = x[0]; std::isfinite(value); value = x[at]) ++at;
      scan.first_nonfinite = begin + at;
    }
    begin += count;
  }
  // A damaged message may end within a float.
  char rest[sizeof(float)];
  const size_t bytes = size_ % sizeof(float);
  reader.Copy(bytes, rest);
  scan.crc32c = ExtendCrc32c(scan.crc32c, rest, bytes);
  return scan;
}

}  // namespace tributary
