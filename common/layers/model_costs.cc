// SPDX-License-Identifier: Apache-2.0
#include "common/layers/model_costs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/layers/layer_kind.h"
#include "common/layers/model_parameters.h"
#include "common/status/about_field.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

using Specs = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

// Elements of one sample anywhere in the model; sums of them stay exact.
constexpr int64_t kMostElements = int64_t{1} << 40;

absl::Status CheckShape(const Shape& shape) {
  int64_t size = 1;
  for (int64_t extent : shape) {
    if (extent < 1 || extent > kMostElements / size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "makes samples without elements or with more than ", kMostElements));
    }
    size *= extent;
  }
  return absl::OkStatus();
}

// Layers one after the other: the model's, or those of a branch.
struct Stack {
  std::vector<LayerCost> layers;
  int64_t workspace_elements = 0;
  Shape output_shape;
};

// One layer by itself.
struct LayerFacts {
  LayerNumbers numbers;
  LayerMemory memory;
};

class ModelWalk {
 public:
  explicit ModelWalk(const v1::ModelSpec& model)
      : parameters_(ModelParameters(model)) {}

  const ParameterSpecs& parameters() const { return parameters_; }
  int64_t scratch_elements() const { return scratch_elements_; }

  // In a branch the gradient of the input is wanted as well.
  absl::StatusOr<Stack> Walk(const Specs& specs, const Shape& input_shape,
                             const std::string& prefix, bool branch);

 private:
  absl::StatusOr<LayerFacts> Enter(const v1::LayerSpec& spec, bool first,
                                   LayerCost* cost);
  absl::StatusOr<LayerFacts> EnterResidual(const v1::ResidualSpec& spec,
                                           LayerCost* cost);

  const ParameterSpecs parameters_;
  int next_parameter_ = 0;
  int64_t scratch_elements_ = 0;
};

// As worker/train/model/layer_stack.cc: an array that some backward pass reads
// is kept; a layer that can work in place may overwrite any other array.
void PlaceActivations(const std::vector<LayerFacts>& layers, Stack* stack) {
  bool kept = true;  // the input
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerMemory& memory = layers[i].memory;
    if (memory.passes_through) continue;
    kept = kept || memory.reads_input;
    if (!memory.in_place || kept) {
      stack->layers[i].kept_elements +=
          NumElements(layers[i].numbers.output_shape);
    }
    kept = memory.reads_output;
  }
}

// As layer_stack.cc, too: gradients of activations take turns in two arrays.
// Backward ends at the first layer with parameters, whose input needs no
// gradient.
void PlaceGradients(const std::vector<LayerFacts>& layers, bool branch,
                    Stack* stack) {
  size_t last = 0;
  if (!branch) {
    while (last + 1 < layers.size() &&
           stack->layers[last].num_parameters == 0) {
      ++last;
    }
  }
  int incoming = -1, used = 0;
  int64_t largest = 0;
  for (size_t i = layers.size(); i-- > last;) {
    const auto& [numbers, memory] = layers[i];
    LayerCost& cost = stack->layers[i];
    cost.backward_flops = numbers.backward_flops;
    if (i == last && !branch && !memory.always_writes_input_gradient) break;
    cost.backward_flops += numbers.input_gradient_flops;
    if (!memory.in_place || incoming < 0) incoming = incoming == 0 ? 1 : 0;
    used = std::max(used, incoming + 1);
    largest = std::max(largest, NumElements(cost.input_shape));
  }
  stack->workspace_elements = used * largest;
}

absl::StatusOr<Stack> ModelWalk::Walk(const Specs& specs,
                                      const Shape& input_shape,
                                      const std::string& prefix, bool branch) {
  Stack stack;
  stack.output_shape = input_shape;
  std::vector<LayerFacts> layers;
  for (int i = 0; i < specs.size(); ++i) {
    LayerCost cost;
    cost.name = absl::StrCat(prefix, i);
    cost.kind = LayerKindName(specs[i]);
    cost.input_shape = stack.output_shape;
    cost.first_parameter = next_parameter_;
    absl::StatusOr<LayerFacts> facts =
        Enter(specs[i], !branch && i == 0, &cost);
    if (!facts.ok()) {
      const absl::Status& error = facts.status();
      const bool nested = !FieldOf(error).empty();
      return AboutField(nested ? error
                               : absl::InvalidArgumentError(absl::StrCat(
                                     "layer ", cost.name, " (", cost.kind,
                                     "): ", error.message())),
                        absl::StrCat(i, ".", cost.kind));
    }
    const LayerNumbers& numbers = facts->numbers;
    cost.num_parameters = next_parameter_ - cost.first_parameter;
    for (int p = cost.first_parameter; p < next_parameter_; ++p) {
      cost.parameter_elements += parameters_[p].size();
    }
    cost.output_shape = stack.output_shape = numbers.output_shape;
    cost.forward_flops = numbers.forward_flops;
    cost.kept_elements += numbers.own_elements;
    scratch_elements_ = std::max(scratch_elements_, numbers.scratch_elements);
    stack.layers.push_back(std::move(cost));
    layers.push_back(*std::move(facts));
  }
  PlaceActivations(layers, &stack);
  PlaceGradients(layers, branch, &stack);
  return stack;
}

absl::StatusOr<LayerFacts> ModelWalk::Enter(const v1::LayerSpec& spec,
                                            bool first, LayerCost* cost) {
  if (spec.has_residual()) return EnterResidual(spec.residual(), cost);
  const LayerKind* kind = KindOf(spec);
  if (kind == nullptr) return absl::InvalidArgumentError("has no kind");
  const v1::LayerSpec layer = Resolved(spec);
  TRIBUTARY_ASSIGN_OR_RETURN(LayerNumbers numbers,
                             kind->Numbers(layer, {.shape = cost->input_shape,
                                                   .first = first,
                                                   .earlier = &parameters_}));
  TRIBUTARY_RETURN_IF_ERROR(CheckShape(numbers.output_shape));
  next_parameter_ += static_cast<int>(kind->Parameters(layer).size());
  TRIBUTARY_CHECK(next_parameter_ <= static_cast<int>(parameters_.size()));
  return LayerFacts{std::move(numbers), kind->memory()};
}

absl::StatusOr<LayerFacts> ModelWalk::EnterResidual(
    const v1::ResidualSpec& spec, LayerCost* cost) {
  if (spec.body().empty()) {
    return absl::InvalidArgumentError("wants at least one layer in its body");
  }
  const auto walk = [&](const Specs& specs, const char* branch) {
    return AboutField(Walk(specs, cost->input_shape,
                           absl::StrCat(cost->name, ".", branch, "."), true),
                      branch);
  };
  TRIBUTARY_ASSIGN_OR_RETURN(Stack body, walk(spec.body(), "body"));
  TRIBUTARY_ASSIGN_OR_RETURN(Stack shortcut, walk(spec.shortcut(), "shortcut"));
  if (body.output_shape != shortcut.output_shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its body makes samples of shape ", SampleText(body.output_shape),
        ", but what goes around it has ", SampleText(shortcut.output_shape)));
  }
  LayerFacts facts;
  LayerNumbers& n = facts.numbers;
  n.output_shape = body.output_shape;
  n.forward_flops = static_cast<double>(NumElements(n.output_shape));
  n.input_gradient_flops = static_cast<double>(NumElements(cost->input_shape));
  facts.memory = {.reads_input = true, .always_writes_input_gradient = true};
  for (const Stack* branch : {&body, &shortcut}) {
    for (const LayerCost& layer : branch->layers) {
      n.forward_flops += layer.forward_flops;
      n.backward_flops += layer.backward_flops;
      n.own_elements += layer.kept_elements;
      cost->workspace_elements += layer.workspace_elements;
    }
    cost->workspace_elements += branch->workspace_elements;
  }
  cost->body = std::move(body.layers);
  cost->shortcut = std::move(shortcut.layers);
  return facts;
}

template <typename Number>
Number Sum(const std::vector<LayerCost>& layers, Number LayerCost::*member) {
  Number sum = 0;
  for (const LayerCost& layer : layers) sum += layer.*member;
  return sum;
}

}  // namespace

int64_t ModelCosts::parameter_elements() const {
  return Sum(layers, &LayerCost::parameter_elements);
}
double ModelCosts::forward_flops() const {
  return Sum(layers, &LayerCost::forward_flops);
}
double ModelCosts::backward_flops() const {
  return Sum(layers, &LayerCost::backward_flops);
}

absl::StatusOr<ModelCosts> CostsOfModel(const v1::ModelSpec& model,
                                        const Shape& sample_shape) {
  if (!CheckShape(sample_shape).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sample must have from 1 to ", kMostElements, " elements"));
  }
  ModelWalk walk(model);
  TRIBUTARY_ASSIGN_OR_RETURN(
      Stack stack,
      AboutField(walk.Walk(model.sequential(), sample_shape, "", false),
                 "sequential"));
  if (walk.parameters().empty()) {
    return absl::InvalidArgumentError(
        "a model wants at least one layer with parameters");
  }
  ModelCosts costs;
  costs.model = model;
  costs.layers = std::move(stack.layers);
  costs.workspace_elements = stack.workspace_elements + walk.scratch_elements();
  for (const LayerCost& layer : costs.layers) {
    costs.workspace_elements += layer.workspace_elements;
  }
  for (const ParameterSpec& parameter : walk.parameters()) {
    costs.parameter_sizes.push_back(parameter.size());
  }
  return costs;
}

}  // namespace tributary
