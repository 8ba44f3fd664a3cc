// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// Adds a trained vector per position. x, y: [positions, dim], weight: [length,
// dim]; positions must not exceed length.
class PositionEmbeddingLayer final : public Layer {
 public:
  explicit PositionEmbeddingLayer(const LayerInit& init)
      : Layer(init), size_(init.parameters[0].size()) {}

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    ops()->Add(rows, input_size(), x, weight(0), y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    const int64_t used = input_size();
    ops()->ColumnSum(pass.rows, used, pass.dy, pass.accumulate ? 1 : 0,
                     gradient(0));
    if (!pass.accumulate) ops()->Fill(size_ - used, 0, gradient(0) + used);
    gradient_ready(0);
    return pass.dy;
  }

 private:
  const int64_t size_;  // of the weight
};

}  // namespace

void AddPositionEmbeddingLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kPositionEmbedding,
                [](const LayerInit& init) -> LayerOr {
                  return std::make_unique<PositionEmbeddingLayer>(init);
                });
}

}  // namespace tributary
