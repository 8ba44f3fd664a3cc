// SPDX-License-Identifier: Apache-2.0
#include "common/wire/encoded_floats.h"

#include <algorithm>
#include <vector>

#include "common/wire/crc32c/crc32c.h"

namespace tributary {
namespace {

// Elements at a time: a multiple of every unit, and few enough for the
// first-level cache.
constexpr int64_t kElements = 2048;

}  // namespace

uint32_t EncodeFloats(const Encoding& encoding, int64_t n, const float* values,
                      char* out, uint32_t crc) {
  for (int64_t begin = 0; begin < n; begin += kElements) {
    const int64_t count = std::min(kElements, n - begin);
    encoding.Encode(count, values + begin, out);
    const auto bytes = static_cast<size_t>(encoding.Bytes(count));
    crc = ExtendCrc32c(crc, out, bytes);
    out += bytes;
  }
  return crc;
}

uint32_t DecodeFloats(const Encoding& encoding, int64_t n, FloatReader* reader,
                      float* values, uint32_t crc) {
  if (&encoding == &Float32Encoding()) return reader->CopyNext(n, values, crc);
  std::vector<char> scratch(
      static_cast<size_t>(encoding.Bytes(std::min(n, kElements))));
  for (int64_t begin = 0; begin < n; begin += kElements) {
    const int64_t count = std::min(kElements, n - begin);
    const auto bytes = static_cast<size_t>(encoding.Bytes(count));
    const char* const in = reader->NextBytes(bytes, scratch.data());
    crc = ExtendCrc32c(crc, in, bytes);
    encoding.Decode(count, in, values + begin);
  }
  return crc;
}

}  // namespace tributary
