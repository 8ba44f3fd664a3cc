// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/wire/shared_buffer.h"
#include "server/store/encoded_weights.h"

namespace tributary {

// A block's weights at one version. They share memory with the block and do not
// change while the response is being sent.
struct WeightsSnapshot {
  int64_t version = 0;  // updates applied
  uint32_t crc32c = 0;
  int64_t num_elements = 0;
  SharedBuffer weights;
  // Null: workers get the floats themselves.
  std::shared_ptr<EncodedWeights> encoded;
  // True when the step for whose weights the caller has asked changed nothing.
  bool skipped = false;
};
using WeightsDone = std::function<void(absl::StatusOr<WeightsSnapshot>)>;

}  // namespace tributary
