#include "common/job/model_parameters.h"

#include "absl/strings/str_cat.h"

namespace tributary {

ParameterSpecs ModelParameters(const v1::ModelSpec& model) {
  ParameterSpecs specs;
  for (int i = 0; i < model.sequential_size(); ++i) {
    const v1::LayerSpec& layer = model.sequential(i);
    const std::string weight = absl::StrCat(i, ".weight");
    const std::string bias = absl::StrCat(i, ".bias");
    if (layer.has_linear()) {
      const v1::LinearSpec& linear = layer.linear();
      specs.push_back({weight, {linear.out(), linear.in()}});
      if (!linear.has_bias() || linear.bias()) {
        specs.push_back({bias, {linear.out()}});
      }
    } else if (layer.has_layernorm()) {
      specs.push_back({weight, {layer.layernorm().features()}});
      specs.push_back({bias, {layer.layernorm().features()}});
    }
  }
  return specs;
}

}  // namespace tributary
