// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "worker/train/model/layer_factory.h"
#include "worker/train/model/layer_stack.h"

namespace tributary {

// y = body(x) + shortcut(x), or body(x) + x without a shortcut. Parameters are
// named "body.0.weight", "shortcut.0.weight".
class ResidualLayer final : public Layer {
 public:
  // `body` and, if it is not null, `shortcut` must take samples of input_shape,
  // return output_shape and have memory already (LayerStack::Place).
  ResidualLayer(Ops* ops, Shape input_shape, Shape output_shape,
                std::unique_ptr<LayerStack> body,
                std::unique_ptr<LayerStack> shortcut)
      : Layer(ops, std::move(input_shape), std::move(output_shape),
              ParametersOf(*body, shortcut.get()), Memory()),
        body_(std::move(body)),
        shortcut_(std::move(shortcut)) {}

  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  static ParameterSpecs ParametersOf(const LayerStack& body,
                                     const LayerStack* shortcut);
  // Assumes that the backward pass of some inner layer reads the input.
  static LayerMemory Memory() {
    return {.reads_input = true, .always_writes_input_gradient = true};
  }

  const std::unique_ptr<LayerStack> body_;
  const std::unique_ptr<LayerStack> shortcut_;
};

// Errors as in CreateLayer.
LayerOr CreateResidual(const v1::ResidualSpec& spec, const Shape& input_shape,
                       const LayerOptions& options);

}  // namespace tributary
