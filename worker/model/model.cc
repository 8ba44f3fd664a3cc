#include "worker/model/model.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "worker/model/layer_factory.h"

namespace tributary {
namespace {

constexpr int64_t kAlignment = 64 / sizeof(float);

int64_t RoundUp(int64_t elements) {
  return (elements + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelSpec& spec,
                                                     const Shape& sample_shape,
                                                     const Options& options) {
  TRIBUTARY_CHECK(options.ops != nullptr);
  if (options.max_rows < 1 || NumElements(sample_shape) < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a model wants batches of at least one sample with at least one "
        "element, got ",
        options.max_rows, " samples of shape [",
        absl::StrJoin(sample_shape, ", "), "]"));
  }
  std::unique_ptr<Model> model(new Model(options.ops, options.max_rows));
  TRIBUTARY_RETURN_IF_ERROR(model->AddLayers(spec, sample_shape, options.seed));
  TRIBUTARY_RETURN_IF_ERROR(model->PlaceParameters());
  TRIBUTARY_RETURN_IF_ERROR(model->PlaceActivations());
  TRIBUTARY_RETURN_IF_ERROR(model->PlaceInputGradients());
  return model;
}

absl::Status Model::AddLayers(const v1::ModelSpec& spec,
                              const Shape& sample_shape, uint64_t seed) {
  Shape shape = sample_shape;
  for (int i = 0; i < spec.sequential_size(); ++i) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        std::unique_ptr<Layer> layer,
        CreateLayer(
            spec.sequential(i), shape,
            {.ops = ops_, .max_rows = max_rows_, .seed = seed, .index = i}));
    shape = layer->output_shape();
    first_parameter_.push_back(static_cast<int>(parameters_.size()));
    if (parameters_.empty()) first_trained_layer_ = i;
    for (ParameterSpec& parameter : layer->parameters()) {
      parameter.name = absl::StrCat(i, ".", parameter.name);
      parameters_.push_back(std::move(parameter));
    }
    layers_.push_back(std::move(layer));
  }
  if (parameters_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model wants at least one layer with parameters, got ",
                     spec.sequential_size(), " layers without any"));
  }
  return absl::OkStatus();
}

absl::Status Model::PlaceParameters() {
  int64_t size = 0;
  for (const ParameterSpec& parameter : parameters_) {
    offsets_.push_back(size);
    size += RoundUp(parameter.size());
  }
  TRIBUTARY_ASSIGN_OR_RETURN(weights_,
                             DeviceArray<float>::Allocate(ops_, size));
  TRIBUTARY_ASSIGN_OR_RETURN(gradients_,
                             DeviceArray<float>::Allocate(ops_, size));
  ops_->Fill(size, 0, weights_.data());
  ops_->Fill(size, 0, gradients_.data());

  for (size_t i = 0; i < layers_.size(); ++i) {
    std::vector<float*> weights, gradients;
    const int count = static_cast<int>(layers_[i]->parameters().size());
    for (int p = 0; p < count; ++p) {
      weights.push_back(weight(first_parameter_[i] + p));
      gradients.push_back(gradient(first_parameter_[i] + p));
    }
    layers_[i]->Bind(weights, gradients);
  }
  return absl::OkStatus();
}

// An array that some layer's backward pass reads is kept; a layer may write
// over any other one that it can.
absl::Status Model::PlaceActivations() {
  const int64_t sample_size = layers_.front()->input_size();
  if (!ops_->is_host()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        features_, DeviceArray<float>::Allocate(ops_, max_rows_ * sample_size));
  }
  places_.resize(layers_.size());
  activations_.resize(layers_.size() + 1);
  int input = -1;    // buffer; -1: the features, which belong to the caller
  bool kept = true;  // the input
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = *layers_[i];
    if (layer.PassesThrough()) {
      places_[i].output = input;
      continue;
    }
    kept = kept || layer.ReadsInput();
    if (layer.InPlace() && !kept) {
      places_[i].output = input;
    } else {
      TRIBUTARY_ASSIGN_OR_RETURN(places_[i].output,
                                 AddBuffer(layer.output_size()));
    }
    kept = layer.ReadsOutput();
    input = places_[i].output;
  }
  return absl::OkStatus();
}

// Gradients of activations live for one layer: two buffers take turns. The
// first comes from the caller and is never written.
absl::Status Model::PlaceInputGradients() {
  int64_t largest = 0;
  int incoming = -1;  // 0 or 1; -1: the caller's
  int used = 0;
  for (int i = static_cast<int>(layers_.size()) - 1; i >= first_trained_layer_;
       --i) {
    if (i == first_trained_layer_ && !layers_[i]->AlwaysWritesInputGradient()) {
      break;
    }
    const bool in_place = layers_[i]->InPlace() && incoming >= 0;
    if (!in_place) incoming = incoming == 0 ? 1 : 0;
    places_[i].input_gradient = incoming;
    used = std::max(used, incoming + 1);
    largest = std::max(largest, layers_[i]->input_size());
  }
  const int first = static_cast<int>(buffers_.size());
  for (int b = 0; b < used; ++b) {
    TRIBUTARY_RETURN_IF_ERROR(AddBuffer(largest).status());
  }
  for (Place& place : places_) {
    if (place.input_gradient >= 0) place.input_gradient += first;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Model::AddBuffer(int64_t elements_per_row) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      DeviceArray<float> buffer,
      DeviceArray<float>::Allocate(ops_, max_rows_ * elements_per_row));
  buffers_.push_back(std::move(buffer));
  return static_cast<int>(buffers_.size()) - 1;
}

float* Model::BufferAt(int place) {
  return place < 0 ? nullptr : buffers_[place].data();
}

const float* Model::Forward(const float* features, int64_t rows,
                            const ForwardContext& context) {
  TRIBUTARY_CHECK(rows >= 0 && rows <= max_rows_);
  rows_ = rows;
  if (!ops_->is_host()) {
    ops_->CopyIn(features_.data(), features,
                 rows * layers_.front()->input_size() * sizeof(float));
    features = features_.data();
  }
  activations_[0] = features;
  for (size_t i = 0; i < layers_.size(); ++i) {
    activations_[i + 1] = layers_[i]->Forward(context, rows, activations_[i],
                                              BufferAt(places_[i].output));
  }
  return activations_.back();
}

void Model::Backward(const float* d_logits, bool accumulate,
                     const std::function<void(int parameter)>& gradient_ready) {
  const float* dy = d_logits;
  for (int i = static_cast<int>(layers_.size()) - 1; i >= first_trained_layer_;
       --i) {
    const BackwardPass pass = {.rows = rows_,
                               .x = activations_[i],
                               .y = activations_[i + 1],
                               .dy = dy,
                               .dx = BufferAt(places_[i].input_gradient),
                               .accumulate = accumulate};
    dy = layers_[i]->Backward(pass, [&](int parameter) {
      if (gradient_ready) gradient_ready(first_parameter_[i] + parameter);
    });
  }
}

}  // namespace tributary
