// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"
#include "common/layers/window_plane.h"

namespace tributary {
namespace {

// At least 1, because layers that are not valid come here, too.
int64_t GroupsOf(const v1::Conv2dSpec& spec) {
  return std::max<int64_t>(1, spec.groups());
}

// torch.nn.Conv2d. weight: [out, in / groups, kernel height, kernel width],
// bias: [out].
class Conv2d final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    const v1::Conv2dSpec& conv = layer.conv2d();
    TRIBUTARY_RETURN_IF_ERROR(chain->WantChannels(path + ".in", conv.in()));
    for (const auto& [name, numbers] :
         {std::pair(".kernel", &conv.kernel()),
          std::pair(".stride", &conv.stride()),
          std::pair(".padding", &conv.padding()),
          std::pair(".dilation", &conv.dilation())}) {
      TRIBUTARY_RETURN_IF_ERROR(CheckPair(*chain, path + name, *numbers));
    }
    if (conv.in() % GroupsOf(conv) != 0 || conv.out() % GroupsOf(conv) != 0) {
      return chain->Error(path + ".groups", " must divide in and out, ",
                          conv.in(), " and ", conv.out(), ", got ",
                          conv.groups());
    }
    chain->SetChannels(conv.out(), path + ".out");
    return absl::OkStatus();
  }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const v1::Conv2dSpec& conv = layer.conv2d();
    const int64_t channels = conv.in() / GroupsOf(conv);
    const std::array<int64_t, 2> kernel = PairOf(conv.kernel(), 1);
    const InitialValues initial =
        UniformOfFanIn(static_cast<double>(channels) *
                       static_cast<double>(kernel[0] * kernel[1]));
    std::vector<LayerParameter> parameters = {
        {"weight", {conv.out(), channels, kernel[0], kernel[1]}, initial}};
    if (conv.bias()) parameters.push_back({"bias", {conv.out()}, initial});
    return parameters;
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const v1::Conv2dSpec& conv = layer.conv2d();
    TRIBUTARY_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(input.shape));
    if (channels != conv.in()) {
      return WantsSamples(input.shape, "of in = ", conv.in(), " channels");
    }
    if (conv.in() % GroupsOf(conv) != 0 || conv.out() % GroupsOf(conv) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("groups must divide in and out, got in ", conv.in(),
                       ", out ", conv.out(), ", groups ", conv.groups()));
    }
    const PlaneWindow window = WindowOf(conv);
    TRIBUTARY_ASSIGN_OR_RETURN(const auto plane,
                               PlaneBehind(window, input.shape));
    LayerNumbers n;
    n.output_shape = {conv.out(), plane[0], plane[1]};
    const int64_t products =
        conv.in() / GroupsOf(conv) * window.kernel[0] * window.kernel[1];
    const double product =
        2 * Elements(n.output_shape) * static_cast<double>(products);
    const double add = conv.bias() ? Elements(n.output_shape) : 0;
    n.forward_flops = product + add;
    n.backward_flops = product + add;
    n.input_gradient_flops = product;
    return n;
  }
  LayerMemory memory() const override { return {.reads_input = true}; }

 private:
  static constexpr FieldRule kRules[] = {
      Required("Conv2dSpec.in", kExtent),
      Required("Conv2dSpec.out", kExtent),
      Required("Conv2dSpec.kernel", kSide),
      Default("Conv2dSpec.stride", "1", kSide),
      Default("Conv2dSpec.padding", "0", kPadding),
      Default("Conv2dSpec.dilation", "1", kSide),
      Default("Conv2dSpec.groups", "1", kExtent),
      Default("Conv2dSpec.bias", "true"),
  };
};

}  // namespace

void AddConv2d(LayerKinds* kinds) {
  static const Conv2d conv2d;
  kinds->Add(v1::LayerSpec::kConv2D, &conv2d);
}

}  // namespace tributary
