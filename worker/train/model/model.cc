// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/layers/model_parameters.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

constexpr int64_t kAlignment = 64 / sizeof(float);

int64_t RoundUp(int64_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

// The layers [first, end) of a model.
LayerStack::Specs LayersOf(const v1::ModelSpec& spec, int first, int end) {
  LayerStack::Specs layers;
  for (int i = first; i < end; ++i) *layers.Add() = spec.sequential(i);
  return layers;
}

const ParameterSpec& Named(const std::string& name, const ParameterSpecs& all) {
  const auto found =
      std::find_if(all.begin(), all.end(),
                   [&](const ParameterSpec& p) { return p.name == name; });
  TRIBUTARY_CHECK(found != all.end());
  return *found;
}

// The shape of a sample at the input of `layer`, from temporary layers that are
// built for one row.
absl::StatusOr<Shape> ShapeBefore(const v1::ModelSpec& spec, int layer,
                                  const Shape& sample_shape,
                                  LayerOptions options) {
  Scratch scratch;
  options.max_rows = 1;
  options.scratch = &scratch;
  options.first = true;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<LayerStack> layers,
      LayerStack::Create(LayersOf(spec, 0, layer), sample_shape, options));
  return layers->output_shape();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelSpec& spec,
                                                     const Shape& sample_shape,
                                                     const Options& options) {
  TRIBUTARY_CHECK(options.ops != nullptr && options.activation_sets > 0);
  if (options.max_rows < 1 || NumElements(sample_shape) < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a model wants batches of at least one sample with at least one "
        "element, got ",
        options.max_rows, " samples of shape [",
        absl::StrJoin(sample_shape, ", "), "]"));
  }
  std::unique_ptr<Model> model(new Model(spec, options));
  TRIBUTARY_RETURN_IF_ERROR(model->CreateLayers(spec, sample_shape, options));
  TRIBUTARY_RETURN_IF_ERROR(model->PlaceParameters());
  for (const std::unique_ptr<LayerStack>& stack : model->stacks_) {
    TRIBUTARY_RETURN_IF_ERROR(model->Tie(*stack));
    const LayerStack* const first = model->stacks_.front().get();
    TRIBUTARY_RETURN_IF_ERROR(
        stack->Place(/*input_gradient=*/options.first_layer > 0,
                     stack.get() == first ? nullptr : first));
  }
  TRIBUTARY_RETURN_IF_ERROR(model->scratch_.Allocate(options.ops));
  return model;
}

Model::Model(const v1::ModelSpec& spec, const Options& options)
    : ops_(options.ops),
      max_rows_(options.max_rows),
      first_layer_(options.first_layer),
      end_layer_(options.end_layer > 0 ? options.end_layer
                                       : spec.sequential_size()),
      group_(options.group),
      share_gradients_(options.share_gradients) {}

absl::Status Model::CreateLayers(const v1::ModelSpec& spec,
                                 const Shape& sample_shape,
                                 const Options& options) {
  const int layers = spec.sequential_size();
  const bool whole = first_layer_ == 0 && end_layer_ == layers;
  if (!whole &&
      (first_layer_ < 0 || first_layer_ >= end_layer_ || end_layer_ > layers)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a stage wants some of the model's ", layers,
        " layers, got those from ", first_layer_, " to before ", end_layer_));
  }
  const TensorCuts cuts(spec, group_ ? group_->size() : 1, options.cut_logits);
  const ParameterSpecs all = ModelParameters(spec);
  ParameterSpecs here = all;  // with the shapes of this rank
  for (size_t i = 0; group_ != nullptr && i < all.size(); ++i) {
    here[i].shape =
        ShapeOfSlice(all[i].shape, cuts.SliceOf(all[i].name, group_->rank()));
  }
  LayerOptions own = {.ops = ops_,
                      .max_rows = max_rows_,
                      .scratch = &scratch_,
                      .first = first_layer_ == 0,
                      .seed = options.seed,
                      .cuts = &cuts,
                      .group = group_};
  Shape shape = sample_shape;
  if (first_layer_ > 0) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        shape, ShapeBefore(spec, first_layer_, sample_shape, own));
    own.earlier = &here;
  }
  for (int set = 0; set < options.activation_sets; ++set) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        std::unique_ptr<LayerStack> stack,
        LayerStack::Create(LayersOf(spec, first_layer_, end_layer_), shape, own,
                           first_layer_));
    stacks_.push_back(std::move(stack));
  }
  if (whole && stacks_[0]->parameters().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model wants at least one layer with parameters, got ",
                     layers, " layers without any"));
  }
  ListParameters(here);
  CutParameters(all, cuts);
  const int64_t outputs = cuts.cut_outputs();
  if (outputs > 0 && group_ != nullptr && end_layer_ == layers) {
    const int64_t first = EvenCut(outputs, group_->size(), group_->rank());
    output_cut_ = {group_, {first, output_shape().back(), outputs}};
  }
  return absl::OkStatus();
}

void Model::CutParameters(const ParameterSpecs& all, const TensorCuts& cuts) {
  for (const ParameterSpec& parameter : parameters_) {
    ParameterSlice& slice = slices_.emplace_back();
    if (group_ == nullptr) continue;
    slice = cuts.SliceOf(parameter.name, group_->rank());
    TRIBUTARY_CHECK(ShapeOfSlice(Named(parameter.name, all).shape, slice) ==
                    parameter.shape);
  }
}

// Lists the parameters of other stages that layers of this stage are tied to,
// then this stage's own.
void Model::ListParameters(const ParameterSpecs& all) {
  const ParameterSpecs& own = stacks_[0]->parameters();
  const auto is_own = [&own](const std::string& name) {
    return std::any_of(own.begin(), own.end(),
                       [&](const ParameterSpec& p) { return p.name == name; });
  };
  for (const std::unique_ptr<Layer>& layer : stacks_[0]->layers()) {
    const std::string& tied = layer->tied_to();
    if (tied.empty() || is_own(tied) || FindParameter(tied) >= 0) continue;
    parameters_.push_back(Named(tied, all));
    ++copies_;
  }
  parameters_.insert(parameters_.end(), own.begin(), own.end());
}

int Model::FindParameter(const std::string& name) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

absl::Status Model::AllocateGradients(int64_t size) {
  if (share_gradients_ && ops_->is_host()) {
    // If no shared memory can be made, the gradients are sent.
    if (auto arena = SharedArena::Create(size * sizeof(float)); arena.ok()) {
      gradient_memory_ = *std::move(arena);
      gradients_ = DeviceArray<float>::AllocateIn(gradient_memory_, size);
      return absl::OkStatus();
    }
  }
  TRIBUTARY_ASSIGN_OR_RETURN(gradients_,
                             DeviceArray<float>::Allocate(ops_, size));
  return absl::OkStatus();
}

absl::Status Model::PlaceParameters() {
  int64_t size = 0;
  for (const ParameterSpec& parameter : parameters()) {
    offsets_.push_back(size);
    size += RoundUp(parameter.size());
  }
  if (size > 0) {  // a stage may have none
    TRIBUTARY_ASSIGN_OR_RETURN(weights_,
                               DeviceArray<float>::Allocate(ops_, size));
    TRIBUTARY_RETURN_IF_ERROR(AllocateGradients(size));
    ops_->Fill(size, 0, weights_.data());
    ops_->Fill(size, 0, gradients_.data());
  }
  std::vector<float*> weights, gradients;
  for (size_t i = copies_; i < parameters().size(); ++i) {
    weights.push_back(weight(static_cast<int>(i)));
    gradients.push_back(gradient(static_cast<int>(i)));
  }
  for (const std::unique_ptr<LayerStack>& stack : stacks_) {
    stack->Bind(weights, gradients);
  }
  if (!ops_->is_host() && first_layer_ == 0) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        features_,
        DeviceArray<float>::Allocate(
            ops_, activation_sets() * max_rows_ * front().input_size()));
  }
  return absl::OkStatus();
}

absl::Status Model::Tie(LayerStack& stack) {
  for (size_t i = 0; i < stack.layers().size(); ++i) {
    Layer& layer = *stack.layers()[i];
    if (layer.tied_to().empty()) continue;
    // CreateLayer has checked that the parameter exists in an earlier layer.
    const int owned = FindParameter(layer.tied_to());
    if (owned >= copies_ &&
        !stack.layers()[stack.LayerOf(owned - copies_)]->ShareGradient()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layer ", first_layer_ + static_cast<int>(i), ": ", layer.tied_to(),
          " is no embedding's weight, so it can't be shared"));
    }
    layer.BindTied(weight(owned), gradient(owned));
  }
  return absl::OkStatus();
}

const float* Model::Forward(const float* features, int64_t rows,
                            const ForwardContext& context, int set) {
  TRIBUTARY_CHECK(rows >= 0 && rows <= max_rows_);
  if (!ops_->is_host() && first_layer_ == 0) {
    const int64_t size = front().input_size();
    float* const copy = features_.data() + set * max_rows_ * size;
    ops_->CopyIn(copy, features, rows * size * sizeof(float));
    features = copy;
  }
  return stacks_[set]->Forward(context, rows, features);
}

const float* Model::Backward(
    const float* d_logits, bool accumulate,
    const std::function<void(int parameter)>& gradient_ready, int set) {
  // A first stage without parameters needs no backward pass.
  if (parameters_.empty() && first_layer_ == 0) return nullptr;
  const float* d_input =
      stacks_[set]->Backward(d_logits, accumulate, [&](int parameter) {
        if (gradient_ready && status().ok())
          gradient_ready(copies_ + parameter);
      });
  for (int copy = copies_ - 1; copy >= 0; --copy) {
    if (gradient_ready && status().ok()) gradient_ready(copy);
  }
  return d_input;
}

}  // namespace tributary
