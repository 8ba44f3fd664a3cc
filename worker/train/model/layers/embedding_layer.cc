// SPDX-License-Identifier: Apache-2.0
#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// As torch.nn.Embedding: maps token ids, which arrive as float32, to vectors.
// x: [...], y: [..., dim], weight: [tokens, dim]. If a tied layer uses the
// weight too, that layer writes the gradient first and this layer adds to it. A
// rank may hold only the tokens of tokens_; other tokens give zeros.
class EmbeddingLayer final : public Layer {
 public:
  static LayerOr Create(const LayerInit& init) {
    std::unique_ptr<EmbeddingLayer> layer(new EmbeddingLayer(init));
    TRIBUTARY_ASSIGN_OR_RETURN(
        layer->ids_,
        DeviceArray<int64_t>::Allocate(
            init.options.ops, init.options.max_rows * layer->input_size()));
    return layer;
  }

  int64_t num_tokens() const override { return tokens_.total; }
  bool ShareGradient() override { return shared_ = true; }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    const int64_t count = rows * input_size();
    ops()->ToIds(count, x, tokens_.first, tokens_.count, ids_.data());
    ops()->Embedding(count, dim_, ids_.data(), weight(0), y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    if (!pass.accumulate && !shared_) {
      ops()->Fill(tokens_.count * dim_, 0, gradient(0));
    }
    ops()->EmbeddingBackward(pass.rows * input_size(), dim_, ids_.data(),
                             pass.dy, gradient(0));
    gradient_ready(0);
    return nullptr;  // ids have no gradient
  }

 private:
  explicit EmbeddingLayer(const LayerInit& init)
      : Layer(init),
        tokens_{init.part.begin, init.parameters[0].shape[0],
                init.spec.embedding().tokens()},
        dim_(init.spec.embedding().dim()) {}

  const ClassRange tokens_;
  const int64_t dim_;
  DeviceArray<int64_t> ids_;  // of the last forward pass
  bool shared_ = false;
};

}  // namespace

void AddEmbeddingLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kEmbedding, &EmbeddingLayer::Create);
}

}  // namespace tributary
