// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_stack.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<LayerStack>> LayerStack::Create(
    const Specs& specs, const Shape& input_shape, const LayerOptions& options,
    int first_layer) {
  std::unique_ptr<LayerStack> stack(
      new LayerStack(options.ops, options.max_rows));
  Shape shape = input_shape;
  for (int i = 0; i < specs.size(); ++i) {
    const int place = first_layer + i;
    LayerOptions own = options;
    own.name = absl::StrCat(options.name, place);
    own.dropout_key = options.dropout_key + place;
    own.first = options.first && i == 0;
    if (own.earlier == nullptr) own.earlier = &stack->parameters_;
    TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer,
                               CreateLayer(specs[i], shape, own));
    shape = layer->output_shape();
    stack->first_parameter_.push_back(
        static_cast<int>(stack->parameters_.size()));
    for (ParameterSpec parameter : layer->parameters()) {
      parameter.name = absl::StrCat(place, ".", parameter.name);
      stack->parameters_.push_back(std::move(parameter));
    }
    stack->layers_.push_back(std::move(layer));
  }
  return stack;
}

int LayerStack::LayerOf(int parameter) const {
  const auto next = std::upper_bound(first_parameter_.begin(),
                                     first_parameter_.end(), parameter);
  return static_cast<int>(next - first_parameter_.begin()) - 1;
}

void LayerStack::Bind(absl::Span<float* const> weights,
                      absl::Span<float* const> gradients) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const size_t first = first_parameter_[i];
    const size_t count = layers_[i]->parameters().size();
    layers_[i]->Bind(weights.subspan(first, count),
                     gradients.subspan(first, count));
  }
}

absl::Status LayerStack::Place(bool input_gradient, const LayerStack* lender) {
  lender_ = lender;
  TRIBUTARY_CHECK(!layers_.empty());
  places_.resize(layers_.size());
  activations_.resize(layers_.size() + 1);
  TRIBUTARY_RETURN_IF_ERROR(PlaceActivations());
  return PlaceInputGradients(input_gradient);
}

// Assigns buffers to the layers' outputs. The caller's input and arrays that
// some backward pass reads are kept. A layer that can work in place overwrites
// any other array.
absl::Status LayerStack::PlaceActivations() {
  int input = -1;    // buffer; -1: the caller's input array
  bool kept = true;  // the input
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = *layers_[i];
    if (layer.memory().passes_through) {
      places_[i].output = input;
      continue;
    }
    kept = kept || layer.memory().reads_input;
    if (layer.memory().in_place && !kept) {
      places_[i].output = input;
    } else {
      TRIBUTARY_ASSIGN_OR_RETURN(places_[i].output,
                                 AddBuffer(layer.output_size()));
    }
    kept = layer.memory().reads_output;
    input = places_[i].output;
  }
  return absl::OkStatus();
}

// Assigns buffers to the gradients of activations. Each gradient lives for one
// layer only, so two buffers alternate. The first gradient belongs to the
// caller and is never overwritten.
absl::Status LayerStack::PlaceInputGradients(bool input_gradient) {
  last_backward_ = input_gradient || parameters_.empty() ? 0 : LayerOf(0);
  int64_t largest = 0;
  int incoming = -1;  // 0 or 1; -1: the caller's
  int used = 0;
  for (int i = static_cast<int>(layers_.size()) - 1; i >= last_backward_; --i) {
    if (i == last_backward_ && !input_gradient &&
        !layers_[i]->memory().always_writes_input_gradient) {
      break;
    }
    const bool in_place = layers_[i]->memory().in_place && incoming >= 0;
    if (!in_place) incoming = incoming == 0 ? 1 : 0;
    places_[i].input_gradient = incoming;
    used = std::max(used, incoming + 1);
    largest = std::max(largest, layers_[i]->input_size());
  }
  const int first = static_cast<int>(buffers_.size());
  for (int b = 0; lender_ == nullptr && b < used; ++b) {
    TRIBUTARY_RETURN_IF_ERROR(AddBuffer(largest).status());
  }
  for (LayerPlace& place : places_) {
    if (place.input_gradient >= 0) place.input_gradient += first;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> LayerStack::AddBuffer(int64_t elements_per_row) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      DeviceArray<float> buffer,
      DeviceArray<float>::Allocate(ops_, max_rows_ * elements_per_row));
  buffers_.push_back(std::move(buffer));
  return static_cast<int>(buffers_.size()) - 1;
}

float* LayerStack::BufferAt(int place) const {
  if (place < 0) return nullptr;
  return place < static_cast<int>(buffers_.size()) ? buffers_[place].data()
                                                   : lender_->BufferAt(place);
}

const float* LayerStack::Forward(const ForwardContext& context, int64_t rows,
                                 const float* x) {
  TRIBUTARY_CHECK(rows >= 0 && rows <= max_rows_);
  rows_ = rows;
  activations_[0] = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    activations_[i + 1] = layers_[i]->Forward(context, rows, activations_[i],
                                              BufferAt(places_[i].output));
  }
  return activations_.back();
}

const float* LayerStack::Backward(const float* dy, bool accumulate,
                                  absl::FunctionRef<void(int)> gradient_ready) {
  for (int i = static_cast<int>(layers_.size()) - 1; i >= last_backward_; --i) {
    const BackwardPass pass = {.rows = rows_,
                               .x = activations_[i],
                               .y = activations_[i + 1],
                               .dy = dy,
                               .dx = BufferAt(places_[i].input_gradient),
                               .accumulate = accumulate};
    dy = layers_[i]->Backward(pass, [&](int parameter) {
      gradient_ready(first_parameter_[i] + parameter);
    });
  }
  return dy;
}

}  // namespace tributary
