#include "common/wire/payload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/wire/crc32c.h"

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

uint32_t Payload::Crc32c() const {
  uint32_t crc = 0;
  for (const Piece& piece : pieces_) {
    crc = ExtendCrc32c(crc, piece.data(), piece.size());
  }
  return crc;
}

void Payload::CopyTo(void* out) const {
  auto* at = static_cast<char*>(out);
  for (const Piece& piece : pieces_) {
    at = std::copy(piece.begin(), piece.end(), at);
  }
}

const float* FloatReader::Next(int64_t n, float* scratch) {
  const size_t wanted = static_cast<size_t>(n) * sizeof(float);
  while (piece_ < pieces_.size() && at_ == pieces_[piece_].size()) {
    ++piece_;
    at_ = 0;
  }
  if (piece_ < pieces_.size() && pieces_[piece_].size() - at_ >= wanted) {
    const char* here = pieces_[piece_].data() + at_;
    if (reinterpret_cast<uintptr_t>(here) % alignof(float) == 0) {
      at_ += wanted;
      return reinterpret_cast<const float*>(here);
    }
  }
  CopyNext(n, scratch);
  return scratch;
}

void FloatReader::CopyNext(int64_t n, float* floats) {
  size_t wanted = static_cast<size_t>(n) * sizeof(float);
  auto* out = reinterpret_cast<char*>(floats);
  while (wanted > 0) {
    TRIBUTARY_CHECK(piece_ < pieces_.size());
    const size_t take = std::min(wanted, pieces_[piece_].size() - at_);
    std::memcpy(out, pieces_[piece_].data() + at_, take);
    out += take;
    at_ += take;
    wanted -= take;
    if (at_ == pieces_[piece_].size()) {
      ++piece_;
      at_ = 0;
    }
  }
}

namespace {

// Only NaNs and infinities have all exponent bits set. The loop has no branch,
// so that it is vectorized.
bool AnyNonFinite(const float* x, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, x + i, sizeof(bits));
    found |= (bits & kExponent) == kExponent;
  }
  return found != 0;
}

}  // namespace

int64_t FirstNonFinite(const Payload& payload) {
  constexpr int64_t kTile = 1024;
  float scratch[kTile];
  FloatReader reader(payload);
  const auto n = static_cast<int64_t>(payload.size() / sizeof(float));
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t count = std::min(kTile, n - begin);
    const float* tile = reader.Next(count, scratch);
    if (!AnyNonFinite(tile, count)) continue;
    const float* at = std::find_if_not(
        tile, tile + count, [](float x) { return std::isfinite(x); });
    return begin + (at - tile);
  }
  return -1;
}

}  // namespace tributary
