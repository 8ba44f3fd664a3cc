// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// y = x w^T with an embedding's weight, as the head of a language model. x:
// [..., dim], y: [..., tokens].
class TiedLinearLayer final : public Layer {
 public:
  explicit TiedLinearLayer(const LayerInit& init)
      : Layer(init), to_(init.spec.tied_linear().to()) {}

  const std::string& tied_to() const override { return to_; }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    const int64_t m = rows * (input_size() / dim());
    ops()->Gemm(false, true, m, tokens(), dim(), 1, x, weight(0), 0, y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    const int64_t m = pass.rows * (input_size() / dim());
    if (pass.dx != nullptr) {
      ops()->Gemm(false, false, m, dim(), tokens(), 1, pass.dy, weight(0), 0,
                  pass.dx);
    }
    ops()->Gemm(true, false, tokens(), dim(), m, 1, pass.dy, pass.x,
                pass.accumulate ? 1 : 0, gradient(0));
    return pass.dx;
  }

 private:
  int64_t dim() const { return input_shape().back(); }
  int64_t tokens() const { return output_shape().back(); }

  const std::string to_;
};

}  // namespace

void AddTiedLinearLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kTiedLinear,
                [](const LayerInit& init) -> LayerOr {
                  return std::make_unique<TiedLinearLayer>(init);
                });
}

}  // namespace tributary
