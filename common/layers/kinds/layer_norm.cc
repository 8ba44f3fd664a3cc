#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// torch.nn.LayerNorm over the last extent; weight, bias: [features].
class LayerNorm final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    const int64_t features = layer.layernorm().features();
    TRIBUTARY_RETURN_IF_ERROR(
        chain->WantFeatures(path + ".features", features));
    chain->SetFeatures(features, path + ".features");
    return absl::OkStatus();
  }
  int64_t WantedFeatures(const v1::LayerSpec& layer,
                         std::string* field) const override {
    *field = ".features";
    return layer.layernorm().features();
  }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const Shape shape = {layer.layernorm().features()};
    return {{"weight", shape, {.value = 1}}, {"bias", shape, {}}};
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const int64_t features = layer.layernorm().features();
    if (input.shape.empty() || input.shape.back() != features) {
      return WantsSamples(input.shape,
                          "whose last extent is features = ", features);
    }
    LayerNumbers n;
    n.output_shape = input.shape;
    n.forward_flops = kNormalize * Elements(input.shape);
    n.backward_flops = kNormalizeBackward * Elements(input.shape);
    n.own_elements = 2 * (NumElements(input.shape) / features);
    return n;
  }
  LayerMemory memory() const override {
    return {.reads_input = true, .always_writes_input_gradient = true};
  }

 private:
  static constexpr FieldRule kRules[] = {
      Required("LayerNormSpec.features", kExtent),
      Default("LayerNormSpec.epsilon", "1e-5", kPositive),
  };
};

}  // namespace

void AddLayerNorm(LayerKinds* kinds) {
  static const LayerNorm layer_norm;
  kinds->Add(v1::LayerSpec::kLayernorm, &layer_norm);
}

}  // namespace tributary
