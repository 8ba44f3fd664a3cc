#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "common/layers/model_parameters.h"
#include "common/status/status_macros.h"
#include "worker/model/layers/batch_norm_layer.h"
#include "worker/model/layers/conv2d_layer.h"
#include "worker/model/layers/layer_creators.h"
#include "worker/model/layers/pool_layers.h"

namespace tributary {
namespace {

// The channels of a sample [channels, height, width]; [height, width] is one.
absl::StatusOr<int64_t> ChannelsOf(const Shape& input_shape) {
  if (input_shape.size() == 3) return input_shape[0];
  if (input_shape.size() == 2) return 1;
  return absl::InvalidArgumentError(
      absl::StrCat("wants samples of shape [channels, height, width] or "
                   "[height, width], gets ",
                   SampleText(input_shape)));
}

// Where a window of the spec's kernel, stride and padding fits over the input's
// planes.
template <typename Spec>
absl::StatusOr<Window> WindowOf(const Spec& spec, const Shape& input_shape) {
  const std::array<int64_t, 2> kernel = PairOf(spec.kernel(), 1);
  const std::array<int64_t, 2> padding = PairOf(spec.padding(), 0);
  std::array<int64_t, 2> stride = PairOf(spec.stride(), 1);
  std::array<int64_t, 2> dilation = {1, 1};
  if constexpr (std::is_same_v<Spec, v1::Conv2dSpec>) {
    dilation = PairOf(spec.dilation(), 1);
  } else if (spec.stride().empty()) {
    stride = kernel;
  }
  const size_t rank = input_shape.size();
  const Window w = {input_shape[rank - 2],
                    input_shape[rank - 1],
                    kernel[0],
                    kernel[1],
                    stride[0],
                    stride[1],
                    padding[0],
                    padding[1],
                    dilation[0],
                    dilation[1]};
  constexpr int64_t kMost = 1 << 16;  // a side; products stay below 2^63
  if (std::min({kernel[0], kernel[1], stride[0], stride[1], dilation[0],
                dilation[1], padding[0] + 1, padding[1] + 1}) < 1 ||
      std::max({kernel[0], kernel[1], stride[0], stride[1], dilation[0],
                dilation[1], padding[0], padding[1], w.height, w.width}) >
          kMost) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel, stride and dilation must be from 1 to ", kMost,
        ", padding from 0, for images of at most as many rows and columns"));
  }
  // Not by the output's extent: division cuts towards zero.
  const int64_t over_height = w.height + 2 * w.padding_height -
                              w.dilation_height * (w.kernel_height - 1) - 1;
  const int64_t over_width = w.width + 2 * w.padding_width -
                             w.dilation_width * (w.kernel_width - 1) - 1;
  if (over_height < 0 || over_width < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a kernel of ", kernel[0], " x ", kernel[1],
                     " does not fit into ", w.height, " x ", w.width,
                     " with padding ", padding[0], " x ", padding[1]));
  }
  return w;
}

// What a sample gives, and the columns that its product may be taken of: in
// double, as the extents may come to 2^67.
absl::Status CheckSampleSize(const Convolution& c) {
  const Window& w = c.window;
  const double places =
      static_cast<double>(w.out_height()) * static_cast<double>(w.out_width());
  const double columns = places * static_cast<double>(c.in_channels) *
                         static_cast<double>(w.kernel_height * w.kernel_width);
  const double most =
      std::max(columns, places * static_cast<double>(c.out_channels));
  if (most <= kMaxExtent) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("takes arrays of ", most, " elements for a sample of ",
                   w.height, " x ", w.width, ", wants at most ", kMaxExtent));
}

// The output keeps the input's channels, if it has any.
Shape PooledShape(const Shape& input_shape, const Window& w) {
  Shape shape = input_shape;
  shape[shape.size() - 2] = w.out_height();
  shape[shape.size() - 1] = w.out_width();
  return shape;
}

template <typename Spec>
absl::StatusOr<Window> PoolWindow(const Spec& spec, const Shape& input_shape) {
  TRIBUTARY_RETURN_IF_ERROR(ChannelsOf(input_shape).status());
  TRIBUTARY_ASSIGN_OR_RETURN(const Window w, WindowOf(spec, input_shape));
  if (w.padding_height > w.kernel_height / 2 ||
      w.padding_width > w.kernel_width / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding must be at most half the kernel, got padding ",
                     w.padding_height, " x ", w.padding_width, ", kernel ",
                     w.kernel_height, " x ", w.kernel_width));
  }
  return w;
}

}  // namespace

LayerOr CreateConv2d(const v1::Conv2dSpec& spec, const Shape& input_shape,
                     const LayerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(input_shape));
  Convolution c;
  c.in_channels = spec.in();
  c.out_channels = spec.out();
  c.groups = spec.has_groups() ? spec.groups() : 1;
  if (channels != spec.in()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants samples of in = ", spec.in(),
        " channels, gets samples of shape ", SampleText(input_shape)));
  }
  if (c.out_channels < 1 || c.out_channels > kMaxExtent || c.groups < 1 ||
      c.in_channels % c.groups != 0 || c.out_channels % c.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wants at least one channel and groups that divide in and "
        "out, got in ",
        c.in_channels, ", out ", c.out_channels, ", groups ", c.groups));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(c.window, WindowOf(spec, input_shape));
  TRIBUTARY_RETURN_IF_ERROR(CheckSampleSize(c));
  return std::make_unique<Conv2dLayer>(options.ops, input_shape, c,
                                       !spec.has_bias() || spec.bias(),
                                       options.max_rows, options.scratch);
}

LayerOr CreateMaxPool(const v1::MaxPoolSpec& spec, const Shape& input_shape,
                      const LayerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Window w, PoolWindow(spec, input_shape));
  Shape output_shape = PooledShape(input_shape, w);
  TRIBUTARY_ASSIGN_OR_RETURN(
      DeviceArray<int32_t> argmax,
      DeviceArray<int32_t>::Allocate(
          options.ops, options.max_rows * NumElements(output_shape)));
  return std::make_unique<MaxPoolLayer>(
      options.ops, input_shape, std::move(output_shape), w, std::move(argmax));
}

LayerOr CreateAvgPool(const v1::AvgPoolSpec& spec, const Shape& input_shape,
                      const LayerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const Window w, PoolWindow(spec, input_shape));
  return std::make_unique<AvgPoolLayer>(
      options.ops, input_shape, PooledShape(input_shape, w), w,
      !spec.has_count_include_pad() || spec.count_include_pad());
}

LayerOr CreateBatchNorm(const v1::BatchNormSpec& spec, const Shape& input_shape,
                        const LayerOptions& options) {
  BatchNormLayer::Options made;
  made.channels = spec.features();
  if (spec.has_momentum()) made.momentum = spec.momentum();
  if (spec.has_epsilon()) made.epsilon = static_cast<float>(spec.epsilon());
  if (made.channels < 1 || !(made.epsilon > 0) ||
      !(made.momentum > 0 && made.momentum <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "features must be at least 1, epsilon above 0 and momentum above 0 and "
        "at most 1, got features ",
        made.channels, ", epsilon ", made.epsilon, ", momentum ",
        made.momentum));
  }
  const bool plain = input_shape.size() == 1;
  if (!plain) TRIBUTARY_RETURN_IF_ERROR(ChannelsOf(input_shape).status());
  const int64_t channels =
      plain ? input_shape[0] : ChannelsOf(input_shape).value();
  if (channels != made.channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("wants samples of features = ", made.channels,
                     " channels or numbers, gets samples of shape ",
                     SampleText(input_shape)));
  }
  return BatchNormLayer::Create(options.ops, input_shape, made);
}

LayerOr CreateGlobalAvgPool(const Shape& input_shape,
                            const LayerOptions& options) {
  TRIBUTARY_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(input_shape));
  Window w;
  w.height = w.kernel_height = w.stride_height =
      input_shape[input_shape.size() - 2];
  w.width = w.kernel_width = w.stride_width = input_shape.back();
  return std::make_unique<AvgPoolLayer>(options.ops, input_shape,
                                        Shape{channels}, w,
                                        /*count_include_pad=*/true);
}

}  // namespace tributary
