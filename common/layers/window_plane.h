// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/layers/layer_chain.h"
#include "common/layers/layer_kind.h"

namespace tributary {

// Returns a kernel, stride, padding or dilation as [height, width]. One number
// stands for both; without numbers both are `otherwise`.
std::array<int64_t, 2> PairOf(
    const google::protobuf::RepeatedField<int64_t>& numbers, int64_t otherwise);

// InvalidArgument: more than two numbers.
absl::Status CheckPair(const LayerChain& chain, const std::string& path,
                       const google::protobuf::RepeatedField<int64_t>& numbers);

// The channels of a sample [channels, height, width]; 1 for [height, width].
absl::StatusOr<int64_t> ChannelsOf(const Shape& input);

// A window that moves over the planes of a sample, [height, width] each.
struct PlaneWindow {
  std::array<int64_t, 2> kernel;
  std::array<int64_t, 2> stride;
  std::array<int64_t, 2> padding;
  std::array<int64_t, 2> dilation;
};

PlaneWindow WindowOf(const v1::Conv2dSpec& conv);
// A pool without a stride moves by its kernel.
PlaneWindow WindowOf(const v1::MaxPoolSpec& pool);
PlaneWindow WindowOf(const v1::AvgPoolSpec& pool);

// The height and width of the window's output for the last two extents of
// `input`.
absl::StatusOr<std::array<int64_t, 2>> PlaneBehind(const PlaneWindow& window,
                                                   const Shape& input);

}  // namespace tributary
