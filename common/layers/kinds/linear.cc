// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {

absl::StatusOr<LayerNumbers> ProductNumbers(const LayerInput& input, int64_t in,
                                            int64_t out, bool bias) {
  LayerNumbers n;
  n.output_shape = input.shape;
  if (!input.shape.empty() && input.shape.back() == in) {
    n.output_shape.back() = out;
  } else if (input.first && NumElements(input.shape) == in) {
    n.output_shape = {out};  // images as they come, without a flatten
  } else {
    return WantsSamples(input.shape, "whose last extent is in = ", in);
  }
  const double product = 2 * Elements(n.output_shape) * static_cast<double>(in);
  const double add = bias ? Elements(n.output_shape) : 0;
  n.forward_flops = product + add;
  n.backward_flops = product + add;
  n.input_gradient_flops = product;
  return n;
}

namespace {

// torch.nn.Linear: y = x weight^T + bias; weight: [out, in], bias: [out].
class Linear final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    TRIBUTARY_RETURN_IF_ERROR(
        chain->WantFeatures(path + ".in", layer.linear().in()));
    chain->SetFeatures(layer.linear().out(), path + ".out");
    return absl::OkStatus();
  }
  int64_t WantedFeatures(const v1::LayerSpec& layer,
                         std::string* field) const override {
    *field = ".in";
    return layer.linear().in();
  }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const v1::LinearSpec& spec = layer.linear();
    const InitialValues initial =
        UniformOfFanIn(static_cast<double>(spec.in()));
    std::vector<LayerParameter> parameters = {
        {"weight", {spec.out(), spec.in()}, initial}};
    if (spec.bias()) parameters.push_back({"bias", {spec.out()}, initial});
    return parameters;
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const v1::LinearSpec& spec = layer.linear();
    return ProductNumbers(input, spec.in(), spec.out(), spec.bias());
  }
  LayerMemory memory() const override { return {.reads_input = true}; }

  Product ProductOf(const v1::LayerSpec& layer) const override {
    return {layer.linear().in(), layer.linear().out()};
  }
  LayerCut CutAlone() const override { return LayerCut::kGatherColumns; }
  int64_t ExtentToCut(const v1::LayerSpec& layer, int ranks) const override {
    const int64_t out = layer.linear().out();
    return out >= kMinColumns * ranks ? out : 0;
  }
  ParameterSlice SliceOf(const std::string& parameter, LayerCut cut,
                         int64_t begin, int64_t end) const override {
    if (cut != LayerCut::kRows) return {.dim = 0, .begin = begin, .end = end};
    if (parameter == "bias") return {};  // is added to the sum
    return {.dim = 1, .begin = begin, .end = end};
  }

 private:
  static constexpr FieldRule kRules[] = {
      Required("LinearSpec.in", kExtent),
      Required("LinearSpec.out", kExtent),
      Default("LinearSpec.bias", "true"),
  };
  // A rank with fewer columns would wait more than it computes.
  static constexpr int64_t kMinColumns = 16;
};

}  // namespace

void AddLinear(LayerKinds* kinds) {
  static const Linear linear;
  kinds->Add(v1::LayerSpec::kLinear, &linear);
}

}  // namespace tributary
