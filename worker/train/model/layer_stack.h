// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer.h"
#include "worker/train/model/layer_factory.h"

namespace tributary {

// A sequence of layers and the memory between them: a whole model, or one
// branch of a residual. For one thread.
class LayerStack {
 public:
  using Specs = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

  // Builds the layers for samples of `input_shape`. `options` are passed to the
  // layers; options.name is the prefix of their names: "" or "3.body.".
  // first_layer: the index of the first layer, for a range of a model's layers.
  // Errors as in CreateLayer.
  static absl::StatusOr<std::unique_ptr<LayerStack>> Create(
      const Specs& specs, const Shape& input_shape, const LayerOptions& options,
      int first_layer = 0);

  // In forward order, named with the layer's index: "0.weight".
  const ParameterSpecs& parameters() const { return parameters_; }
  const Shape& output_shape() const { return layers_.back()->output_shape(); }
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  // The layer of parameter i.
  int LayerOf(int parameter) const;

  // Sets the arrays of the parameters and of their gradients. Called once.
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients);
  // Allocates all memory, for batches of up to max_rows samples. With
  // `input_gradient` Backward computes the gradient of the input; otherwise it
  // ends at the first layer with parameters. lender: a stack of the same
  // layers, whose memory for gradients this stack shares. Only one of them may
  // run backward at a time, and the lender must outlive the others.
  absl::Status Place(bool input_gradient, const LayerStack* lender = nullptr);

  // x: [rows, input], must not change until Backward is done. Returns the
  // output, valid until the next Forward.
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x);
  // Runs backward through the last Forward; never writes dy. Calls
  // gradient_ready(i) as Layer::Backward does, last parameter first. Returns
  // the gradient of x, or null unless Place was asked for it.
  const float* Backward(const float* dy, bool accumulate,
                        absl::FunctionRef<void(int)> gradient_ready);

 private:
  // The buffers that a layer writes, by index; -1 if it writes none.
  struct LayerPlace {
    int output = -1;
    int input_gradient = -1;
  };

  LayerStack(Ops* ops, int64_t max_rows) : ops_(ops), max_rows_(max_rows) {}

  absl::Status PlaceActivations();
  absl::Status PlaceInputGradients(bool input_gradient);
  absl::StatusOr<int> AddBuffer(int64_t elements_per_row);
  float* BufferAt(int place) const;

  Ops* const ops_;
  const int64_t max_rows_;

  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<int> first_parameter_;  // of each layer
  ParameterSpecs parameters_;
  int last_backward_ = 0;  // the layer at which Backward ends

  std::vector<LayerPlace> places_;           // of each layer
  std::vector<DeviceArray<float>> buffers_;  // the gradients' buffers come last
  const LayerStack* lender_ = nullptr;       // owns the gradients' buffers

  // State of the last Forward.
  int64_t rows_ = 0;
  std::vector<const float*> activations_;  // inputs, then the output
};

}  // namespace tributary
