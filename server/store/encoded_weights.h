// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "common/plan/partition_plan.h"
#include "common/wire/shared_buffer.h"

namespace tributary {

// One version of a block's weights in the encodings of its slices. The first
// answer that needs them encodes them, outside the block's lock; the others
// share the bytes.
class EncodedWeights {
 public:
  struct Bytes {
    SharedBuffer buffer;
    size_t size = 0;
    uint32_t crc32c = 0;
  };

  explicit EncodedWeights(const Block& block) : block_(block) {}

  // weights: the block's, always of the same version. For any thread.
  const Bytes& Of(const float* weights);

 private:
  const Block& block_;
  std::once_flag encoded_;
  Bytes bytes_;
};

}  // namespace tributary
