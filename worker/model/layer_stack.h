#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/model/device_array.h"
#include "worker/model/layer.h"
#include "worker/model/layer_factory.h"

namespace tributary {

// Layers one after the other, and the memory for what passes between them: a
// whole model's, or those of one branch of a residual. For one thread.
class LayerStack {
 public:
  using Specs = google::protobuf::RepeatedPtrField<v1::LayerSpec>;

  // Builds the layers for samples of `input_shape`. `options` are those of the
  // layers; its name is the prefix of theirs: "" or "3.body.". first_layer: the
  // place of the first one, for a range of a model's layers. Errors as
  // CreateLayer's.
  static absl::StatusOr<std::unique_ptr<LayerStack>> Create(
      const Specs& specs, const Shape& input_shape, const LayerOptions& options,
      int first_layer = 0);

  // In forward order, named with the layer's place: "0.weight".
  const ParameterSpecs& parameters() const { return parameters_; }
  const Shape& output_shape() const { return layers_.back()->output_shape(); }
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  // The layer that parameter i belongs to.
  int LayerOf(int parameter) const;

  // Where the parameters and their gradients stand; called once.
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients);
  // Takes all memory, for batches of up to max_rows samples. With
  // `input_gradient` Backward tells the gradient of the input; else it ends at
  // the first layer that has parameters. `lender`: stacks of the same layers
  // that go backward one at a time share the memory of gradients, which is that
  // of the first; it outlives the others.
  absl::Status Place(bool input_gradient, const LayerStack* lender = nullptr);

  // x: [rows, input], unchanged until Backward is done. Returns the output,
  // valid until the next Forward.
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x);
  // Back through the last Forward; dy is never written. Calls gradient_ready(i)
  // as Layer::Backward does, last parameter first. Returns the gradient of x,
  // or null when nobody wants it.
  const float* Backward(const float* dy, bool accumulate,
                        absl::FunctionRef<void(int)> gradient_ready);

 private:
  // Where a layer writes: indices of buffers, -1 for none.
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
  int last_backward_ = 0;  // the layer where Backward ends

  std::vector<LayerPlace> places_;           // of each layer
  std::vector<DeviceArray<float>> buffers_;  // those of gradients last
  const LayerStack* lender_ = nullptr;       // of the latter

  // Of the last Forward.
  int64_t rows_ = 0;
  std::vector<const float*> activations_;  // input of each layer, then output
};

}  // namespace tributary
