// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "common/layers/layer_chain.h"
#include "common/layers/sample_shape.h"
#include "common/layers/window_plane.h"

namespace tributary {
namespace {

// A normalization of the channels of [channels, height, width], or of
// [features]; the field `features` says their number.
class ChannelNorm : public LayerKind {
 public:
  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    if (chain->sequence()) {
      return chain->Error(path,
                          " takes images or plain features, here come "
                          "sequences of tokens; layernorm takes them");
    }
    const int64_t features = FeaturesOf(layer);
    TRIBUTARY_RETURN_IF_ERROR(
        chain->WantFeatures(path + ".features", features));
    return chain->WantChannels(path + ".features", features);
  }
  int64_t WantedFeatures(const v1::LayerSpec& layer,
                         std::string* field) const override {
    *field = ".features";
    return FeaturesOf(layer);
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    int64_t channels = input.shape.size() == 1 ? input.shape[0] : 0;
    if (channels == 0) {
      TRIBUTARY_ASSIGN_OR_RETURN(channels, ChannelsOf(input.shape));
    }
    if (channels != FeaturesOf(layer)) {
      return WantsSamples(input.shape, "of features = ", FeaturesOf(layer),
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

 protected:
  virtual int64_t FeaturesOf(const v1::LayerSpec& layer) const = 0;
};

// torch.nn.BatchNorm1d of [features] and BatchNorm2d of [channels, height,
// width], without its count of batches. weight, bias, running_mean,
// running_var: [features].
class BatchNorm final : public ChannelNorm {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    TRIBUTARY_RETURN_IF_ERROR(ChannelNorm::Check(layer, path, chain));
    if (chain->width().features != 0) chain->NoteBatchStatistics(path);
    return absl::OkStatus();
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

 private:
  int64_t FeaturesOf(const v1::LayerSpec& layer) const override {
    return layer.batch_norm().features();
  }

  static constexpr FieldRule kRules[] = {
      Required("BatchNormSpec.features", kExtent),
      Default("BatchNormSpec.momentum", "0.1",
              {.min = 0, .max = 1, .above_min = true}),
      Default("BatchNormSpec.epsilon", "1e-5", kPositive),
  };
};

// torch.nn.GroupNorm (Wu & He 2018); weight, bias: [features].
class GroupNorm final : public ChannelNorm {
 public:
  absl::Span<const FieldRule> rules() const override { return kRules; }

  absl::Status Check(const v1::LayerSpec& layer, const std::string& path,
                     LayerChain* chain) const override {
    TRIBUTARY_RETURN_IF_ERROR(ChannelNorm::Check(layer, path, chain));
    const v1::GroupNormSpec& spec = layer.group_norm();
    if (spec.features() % spec.groups() == 0) return absl::OkStatus();
    return chain->Error(path + ".groups", " must divide features, ",
                        spec.features(), ", got ", spec.groups());
  }

  std::vector<LayerParameter> Parameters(
      const v1::LayerSpec& layer) const override {
    if (!layer.group_norm().affine()) return {};
    const Shape shape = {FeaturesOf(layer)};
    return {{"weight", shape, {.value = 1}}, {"bias", shape, {}}};
  }

  absl::StatusOr<LayerNumbers> Numbers(const v1::LayerSpec& layer,
                                       const LayerInput& input) const override {
    const v1::GroupNormSpec& spec = layer.group_norm();
    TRIBUTARY_ASSIGN_OR_RETURN(LayerNumbers n,
                               ChannelNorm::Numbers(layer, input));
    if (spec.features() % spec.groups() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("groups must divide features, got features ",
                       spec.features(), ", groups ", spec.groups()));
    }
    n.own_elements = 2 * spec.groups();
    return n;
  }

 private:
  int64_t FeaturesOf(const v1::LayerSpec& layer) const override {
    return layer.group_norm().features();
  }

  static constexpr FieldRule kRules[] = {
      Required("GroupNormSpec.groups", kExtent),
      Required("GroupNormSpec.features", kExtent),
      Default("GroupNormSpec.epsilon", "1e-5", kPositive),
      Default("GroupNormSpec.affine", "true"),
  };
};

}  // namespace

void AddBatchNorm(LayerKinds* kinds) {
  static const BatchNorm batch_norm;
  static const GroupNorm group_norm;
  kinds->Add(v1::LayerSpec::kBatchNorm, &batch_norm);
  kinds->Add(v1::LayerSpec::kGroupNorm, &group_norm);
}

}  // namespace tributary
