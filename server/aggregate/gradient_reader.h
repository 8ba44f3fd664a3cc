// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/partition_plan.h"
#include "common/wire/payload.h"

namespace tributary {

// The result of one pass over the encoded bytes of a contribution. Elements are
// counted within the block.
struct GradientScan {
  uint32_t crc32c = 0;           // of all bytes
  int64_t first_nonfinite = -1;  // the first that is not finite; or -1
  int64_t first_malformed = -1;  // Encoding::FirstMalformed, or -1
};
// If the payload has a wrong size, only the checksum is valid. ignored: the
// slices that may have any numbers ([slice]; empty: none).
GradientScan ScanGradient(const Block& block, const Payload& payload,
                          const std::vector<bool>& ignored = {});

// Reads a contribution to a block front to back as floats, whatever the
// encodings of its slices. The payload has block.gradient_bytes().
class GradientReader {
 public:
  // Both must outlive the reader.
  GradientReader(const Block& block, const Payload& payload)
      : GradientReader(block, payload, block.sends_floats()) {}
  // The payload has float32, whatever the block's encodings.
  static GradientReader OfFloats(const Block& block, const Payload& payload) {
    return GradientReader(block, payload, /*floats=*/true);
  }

  // The best number of elements for the next call of Next: as many as lie in
  // place, or as are decoded at a time.
  int64_t Ahead();

  // Returns the next n elements: floats that lie within one piece of the
  // payload in place, all others in `scratch` (room for n). n must not exceed
  // the number that is left.
  const float* Next(int64_t n, float* scratch);

 private:
  GradientReader(const Block& block, const Payload& payload, bool floats)
      : block_(block), floats_(floats), bytes_(payload) {}

  // Decodes at most n of the slice's next elements to `out`; returns how many.
  int64_t DecodeSome(int64_t n, float* out);

  const Block& block_;
  const bool floats_;
  FloatReader bytes_;
  size_t slice_ = 0;
  int64_t at_ = 0;  // within the slice
  std::vector<char> encoded_;
  // A decoded unit; the elements from unit_at_ on have not been returned yet.
  std::vector<float> unit_;
  size_t unit_at_ = 0;
};

}  // namespace tributary
