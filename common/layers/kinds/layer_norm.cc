// SPDX-License-Identifier: Apache-2.0
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"

namespace tributary {
namespace {

// A normalization of the last extent, whose size the field `features` says.
class LastExtentNorm : public LayerKind {
 public:
  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    const int64_t features = FeaturesOf(layer);
    TRIBUTARY_RETURN_IF_ERROR(
        chain->WantFeatures(path + ".features", features));
    chain->SetFeatures(features, path + ".features");
    return absl::OkStatus();
  }
  int64_t WantedFeatures(const v1::LayerSpec& layer,
                         std::string* field) const override {
    *field = ".features";
    return FeaturesOf(layer);
  }
  LayerMemory memory() const override {
    return {.reads_input = true, .always_writes_input_gradient = true};
  }

 protected:
  virtual int64_t FeaturesOf(const v1::LayerSpec& layer) const = 0;

  // `forward` and `backward` are the FLOPs of one element; `statistics` numbers
  // are kept for each vector.
  absl::StatusOr<LayerNumbers> NumbersOf(const v1::LayerSpec& layer,
                                         const Shape& shape, double forward,
                                         double backward,
                                         int64_t statistics) const {
    const int64_t features = FeaturesOf(layer);
    if (shape.empty() || shape.back() != features) {
      return WantsSamples(shape, "whose last extent is features = ", features);
    }
    LayerNumbers n;
    n.output_shape = shape;
    n.forward_flops = forward * Elements(shape);
    n.backward_flops = backward * Elements(shape);
    n.own_elements = statistics * (NumElements(shape) / features);
    return n;
  }
};

// torch.nn.LayerNorm over the last extent; weight, bias: [features].
class LayerNorm final : public LastExtentNorm {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const Shape shape = {FeaturesOf(layer)};
    return {{"weight", shape, {.value = 1}}, {"bias", shape, {}}};
  }
  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    return NumbersOf(layer, input.shape, kNormalize, kNormalizeBackward, 2);
  }

 private:
  int64_t FeaturesOf(const v1::LayerSpec& layer) const override {
    return layer.layernorm().features();
  }

  static constexpr FieldRule kRules[] = {
      Required("LayerNormSpec.features", kExtent),
      Default("LayerNormSpec.epsilon", "1e-5", kPositive),
  };
};

// torch.nn.RMSNorm over the last extent (Zhang & Sennrich 2019); weight:
// [features].
class RmsNorm final : public LastExtentNorm {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    return {{"weight", {FeaturesOf(layer)}, {.value = 1}}};
  }
  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    return NumbersOf(layer, input.shape, kForward, kBackward, 1);
  }

 private:
  // Forward squares, adds up, scales and multiplies by the weight.
  static constexpr double kForward = 4;
  static constexpr double kBackward = 9;

  int64_t FeaturesOf(const v1::LayerSpec& layer) const override {
    return layer.rms_norm().features();
  }

  // PyTorch's default epsilon is that of the input's type; here 2^-23.
  static constexpr FieldRule kRules[] = {
      Required("RmsNormSpec.features", kExtent),
      Default("RmsNormSpec.epsilon", "1.1920928955078125e-07", kPositive),
  };
};

}  // namespace

void AddLayerNorm(LayerKinds* kinds) {
  static const LayerNorm layer_norm;
  static const RmsNorm rms_norm;
  kinds->Add(v1::LayerSpec::kLayernorm, &layer_norm);
  kinds->Add(v1::LayerSpec::kRmsNorm, &rms_norm);
}

}  // namespace tributary
