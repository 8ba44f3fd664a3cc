#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"
#include "common/layers/window_plane.h"

namespace tributary {
namespace {

// torch.nn.BatchNorm1d of [features] and BatchNorm2d of [channels, height,
// width], without its count of batches. weight, bias, running_mean,
// running_var: [features].
class BatchNorm final : public LayerKind {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    if (chain->sequence()) {
      return chain->Error(path,
                          " takes images or plain features, here come "
                          "sequences of tokens; layernorm takes them");
    }
    const int64_t features = layer.batch_norm().features();
    TRIBUTARY_RETURN_IF_ERROR(
        chain->WantFeatures(path + ".features", features));
    TRIBUTARY_RETURN_IF_ERROR(
        chain->WantChannels(path + ".features", features));
    if (chain->width().features != 0) chain->NoteBatchStatistics(path);
    return absl::OkStatus();
  }
  int64_t WantedFeatures(const v1::LayerSpec& layer,
                         std::string* field) const override {
    *field = ".features";
    return layer.batch_norm().features();
  }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    const v1::BatchNormSpec& spec = layer.batch_norm();
    const Shape shape = {spec.features()};
    return {{"weight", shape, {.value = 1}},
            {"bias", shape, {}},
            {"running_mean", shape, {}, spec.momentum()},
            {"running_var", shape, {.value = 1}, spec.momentum()}};
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const int64_t features = layer.batch_norm().features();
    int64_t channels = input.shape.size() == 1 ? input.shape[0] : 0;
    if (channels == 0) {
      TRIBUTARY_ASSIGN_OR_RETURN(channels, ChannelsOf(input.shape));
    }
    if (channels != features) {
      return WantsSamples(input.shape, "of features = ", features,
                          " channels or numbers");
    }
    LayerNumbers n;
    n.output_shape = input.shape;
    n.forward_flops = kNormalize * Elements(input.shape);
    n.backward_flops = n.input_gradient_flops =
        kNormalizeBackward / 2 * Elements(input.shape);
    return n;
  }
  LayerMemory memory() const override { return {.reads_input = true}; }

 private:
  static constexpr FieldRule kRules[] = {
      Required("BatchNormSpec.features", kExtent),
      Default("BatchNormSpec.momentum", "0.1",
              {.min = 0, .max = 1, .above_min = true}),
      Default("BatchNormSpec.epsilon", "1e-5", kPositive),
  };
};

}  // namespace

void AddBatchNorm(LayerKinds* kinds) {
  static const BatchNorm batch_norm;
  kinds->Add(v1::LayerSpec::kBatchNorm, &batch_norm);
}

}  // namespace tributary
