// SPDX-License-Identifier: Apache-2.0
#include "common/layers/window_plane.h"

#include <algorithm>

#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

constexpr int64_t kMaxSide = 1 << 16;  // products of a few stay below 2^63

template <typename Pool>
PlaneWindow WindowOfPool(const Pool& pool) {
  const std::array<int64_t, 2> kernel = PairOf(pool.kernel(), 1);
  return {.kernel = kernel,
          .stride = pool.stride().empty() ? kernel : PairOf(pool.stride(), 1),
          .padding = PairOf(pool.padding(), 0),
          .dilation = {1, 1}};
}

}  // namespace

PlaneWindow WindowOf(const v1::Conv2dSpec& conv) {
  return {.kernel = PairOf(conv.kernel(), 1),
          .stride = PairOf(conv.stride(), 1),
          .padding = PairOf(conv.padding(), 0),
          .dilation = PairOf(conv.dilation(), 1)};
}

PlaneWindow WindowOf(const v1::MaxPoolSpec& pool) { return WindowOfPool(pool); }
PlaneWindow WindowOf(const v1::AvgPoolSpec& pool) { return WindowOfPool(pool); }

std::array<int64_t, 2> PairOf(
    const google::protobuf::RepeatedField<int64_t>& numbers,
    int64_t otherwise) {
  if (numbers.empty()) return {otherwise, otherwise};
  return {numbers[0], numbers[numbers.size() - 1]};
}

absl::Status CheckPair(
    const LayerChain& chain, const std::string& path,
    const google::protobuf::RepeatedField<int64_t>& numbers) {
  if (numbers.size() <= 2) return absl::OkStatus();
  return chain.Error(path, " wants one number or [height, width], got ",
                     numbers.size(), " numbers");
}

absl::StatusOr<int64_t> ChannelsOf(const Shape& input) {
  if (input.size() == 3) return input[0];
  if (input.size() == 2) return 1;
  return WantsSamples(input,
                      "of shape [channels, height, width] or [height, width]");
}

absl::StatusOr<std::array<int64_t, 2>> PlaneBehind(const PlaneWindow& window,
                                                   const Shape& input) {
  std::array<int64_t, 2> plane;
  for (int side = 0; side < 2; ++side) {
    const int64_t extent = input[input.size() - 2 + side];
    const int64_t kernel = window.kernel[side], stride = window.stride[side];
    const int64_t padding = window.padding[side];
    const int64_t dilation = window.dilation[side];
    if (std::min({kernel, stride, dilation, padding + 1}) < 1 ||
        std::max({kernel, stride, dilation, padding, extent}) > kMaxSide) {
      return absl::InvalidArgumentError(absl::StrCat(
          "kernel, stride and dilation must be from 1 to ", kMaxSide,
          ", padding from 0, for images of at most as many rows and columns"));
    }
    // Checked before the division, which rounds a negative number towards zero.
    const int64_t over = extent + 2 * padding - dilation * (kernel - 1) - 1;
    if (over < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a kernel of ", window.kernel[0], " x ", window.kernel[1],
          " does not fit into ", input[input.size() - 2], " x ", input.back(),
          " with padding ", window.padding[0], " x ", window.padding[1]));
    }
    plane[side] = over / stride + 1;
  }
  return plane;
}

}  // namespace tributary
