// SPDX-License-Identifier: Apache-2.0
#include "server/store/encoded_weights.h"

#include "common/wire/encoded_floats.h"

namespace tributary {
namespace {

EncodedWeights::Bytes Encode(const Block& block, const float* weights) {
  EncodedWeights::Bytes bytes;
  bytes.size = static_cast<size_t>(block.weights_bytes());
  bytes.buffer =
      SharedBuffer(static_cast<int64_t>(bytes.size / sizeof(float) + 1));
  auto* out = reinterpret_cast<char*>(bytes.buffer.data());
  for (const Slice& slice : block.slices) {
    bytes.crc32c = EncodeFloats(*slice.weights_encoding, slice.size(),
                                weights + slice.offset, out, bytes.crc32c);
    out += slice.weights_encoding->Bytes(slice.size());
  }
  return bytes;
}

}  // namespace

const EncodedWeights::Bytes& EncodedWeights::Of(const float* weights) {
  std::call_once(encoded_, [&] { bytes_ = Encode(block_, weights); });
  return bytes_;
}

}  // namespace tributary
