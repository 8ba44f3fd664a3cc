// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"
#include "common/layers/window_plane.h"

namespace tributary {
namespace {

// PyTorch's rule: a window always sees something of the image.
template <typename Pool>
absl::Status CheckPool(const Pool& pool, const std::string& path,
                       LayerChain* chain) {
  TRIBUTARY_RETURN_IF_ERROR(CheckPair(*chain, path + ".kernel", pool.kernel()));
  TRIBUTARY_RETURN_IF_ERROR(CheckPair(*chain, path + ".stride", pool.stride()));
  TRIBUTARY_RETURN_IF_ERROR(
      CheckPair(*chain, path + ".padding", pool.padding()));
  const PlaneWindow window = WindowOf(pool);
  for (int i = 0; i < 2; ++i) {
    if (window.padding[i] <= window.kernel[i] / 2) continue;
    return chain->Error(path + ".padding", " must be at most half the kernel, ",
                        window.kernel[i] / 2, ", got ", window.padding[i]);
  }
  chain->ForgetFeatures();
  return absl::OkStatus();
}

// The output keeps the input's channels, if it has any.
template <typename Pool>
absl::StatusOr<LayerNumbers> PoolNumbers(const Pool& pool, const Shape& input) {
  TRIBUTARY_RETURN_IF_ERROR(ChannelsOf(input).status());
  const PlaneWindow window = WindowOf(pool);
  TRIBUTARY_ASSIGN_OR_RETURN(const auto plane, PlaneBehind(window, input));
  for (int i = 0; i < 2; ++i) {
    if (window.padding[i] <= window.kernel[i] / 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("padding must be at most half the kernel, got padding ",
                     window.padding[0], " x ", window.padding[1], ", kernel ",
                     window.kernel[0], " x ", window.kernel[1]));
  }
  LayerNumbers n;
  n.output_shape = input;
  n.output_shape[input.size() - 2] = plane[0];
  n.output_shape[input.size() - 1] = plane[1];
  n.forward_flops = Elements(n.output_shape) *
                    static_cast<double>(window.kernel[0] * window.kernel[1]);
  n.input_gradient_flops = n.forward_flops;
  return n;
}

// torch.nn.MaxPool2d.
class MaxPool final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }
  void FillDependentDefaults(v1::LayerSpec* layer) const override {
    v1::MaxPoolSpec* pool = layer->mutable_max_pool();
    if (pool->stride().empty()) *pool->mutable_stride() = pool->kernel();
  }
  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    return CheckPool(layer.max_pool(), path, chain);
  }
  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    TRIBUTARY_ASSIGN_OR_RETURN(LayerNumbers n,
                               PoolNumbers(layer.max_pool(), input.shape));
    n.input_gradient_flops = Elements(n.output_shape);
    n.own_elements = NumElements(n.output_shape);  // where the maxima were
    return n;
  }
  LayerMemory memory() const override { return {}; }

 private:
  static constexpr FieldRule kRules[] = {
      Required("MaxPoolSpec.kernel", kSide),
      Limits("MaxPoolSpec.stride", kSide),
      Default("MaxPoolSpec.padding", "0", kPadding),
  };
};

// torch.nn.AvgPool2d.
class AvgPool final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }
  void FillDependentDefaults(v1::LayerSpec* layer) const override {
    v1::AvgPoolSpec* pool = layer->mutable_avg_pool();
    if (pool->stride().empty()) *pool->mutable_stride() = pool->kernel();
  }
  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    return CheckPool(layer.avg_pool(), path, chain);
  }
  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    return PoolNumbers(layer.avg_pool(), input.shape);
  }
  LayerMemory memory() const override { return {}; }

 private:
  static constexpr FieldRule kRules[] = {
      Required("AvgPoolSpec.kernel", kSide),
      Limits("AvgPoolSpec.stride", kSide),
      Default("AvgPoolSpec.padding", "0", kPadding),
      Default("AvgPoolSpec.count_include_pad", "true"),
  };
};

// The mean of each channel: [channels, height, width] -> [channels].
class GlobalAvgPool final : public LayerKind {
 public:
  absl::Status Check(const v1::LayerSpec&, const std::string&,
                     LayerChain* chain) const override {
    const LayerWidth width = chain->width();
    chain->SetFeatures(width.channels, width.channels_path);
    return absl::OkStatus();
  }
  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec&,
                                       const LayerInput& input) const override {
    TRIBUTARY_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(input.shape));
    LayerNumbers n;
    n.output_shape = {channels};
    n.forward_flops = n.input_gradient_flops = Elements(input.shape);
    return n;
  }
  LayerMemory memory() const override { return {}; }
};

}  // namespace

void AddPool(LayerKinds* kinds) {
  static const MaxPool max_pool;
  static const AvgPool avg_pool;
  static const GlobalAvgPool global_avg_pool;
  kinds->Add(v1::LayerSpec::kMaxPool, &max_pool);
  kinds->Add(v1::LayerSpec::kAvgPool, &avg_pool);
  kinds->Add(v1::LayerSpec::kGlobalAvgPool, &global_avg_pool);
}

}  // namespace tributary
