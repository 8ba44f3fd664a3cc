#pragma once

#include <memory>
#include <utility>

#include "worker/model/layer.h"
#include "worker/model/layer_stack.h"

namespace tributary {

// y = body(x) + shortcut(x), or + x without a shortcut. Parameters are named
// "body.0.weight", "shortcut.0.weight".
class ResidualLayer final : public Layer {
 public:
  // Both branches take samples of input_shape and make output_shape; shortcut
  // may be null. Memory is placed.
  ResidualLayer(Ops* ops, Shape input_shape, Shape output_shape,
                std::unique_ptr<LayerStack> body,
                std::unique_ptr<LayerStack> shortcut)
      : Layer(ops, std::move(input_shape), std::move(output_shape)),
        body_(std::move(body)),
        shortcut_(std::move(shortcut)) {}

  ParameterSpecs parameters() const override;
  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  bool ReadsInput() const override { return true; }  // some layer within does
  bool InPlace() const override { return false; }
  bool AlwaysWritesInputGradient() const override { return true; }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  const std::unique_ptr<LayerStack> body_;
  const std::unique_ptr<LayerStack> shortcut_;
};

}  // namespace tributary
