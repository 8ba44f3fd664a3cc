#include "worker/model/layers/embedding_layers.h"

namespace tributary {

ParameterSpecs EmbeddingLayer::parameters() const {
  return {{"weight", {tokens_.count, dim_}}};
}

void EmbeddingLayer::Bind(absl::Span<float* const> weights,
                          absl::Span<float* const> gradients) {
  weight_ = weights[0];
  d_weight_ = gradients[0];
}

const float* EmbeddingLayer::Forward(const ForwardContext&, int64_t rows,
                                     const float* x, float* y) {
  const int64_t count = rows * input_size();
  ops()->ToIds(count, x, tokens_.first, tokens_.count, ids_.data());
  ops()->Embedding(count, dim_, ids_.data(), weight_, y);
  return y;
}

const float* EmbeddingLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  if (!pass.accumulate && !shared_) {
    ops()->Fill(tokens_.count * dim_, 0, d_weight_);
  }
  ops()->EmbeddingBackward(pass.rows * input_size(), dim_, ids_.data(), pass.dy,
                           d_weight_);
  gradient_ready(0);
  return nullptr;  // ids have no gradient
}

ParameterSpecs PositionEmbeddingLayer::parameters() const {
  return {{"weight", {length_, dim_}}};
}

void PositionEmbeddingLayer::Bind(absl::Span<float* const> weights,
                                  absl::Span<float* const> gradients) {
  weight_ = weights[0];
  d_weight_ = gradients[0];
}

const float* PositionEmbeddingLayer::Forward(const ForwardContext&,
                                             int64_t rows, const float* x,
                                             float* y) {
  ops()->Add(rows, input_size(), x, weight_, y);
  return y;
}

const float* PositionEmbeddingLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  const int64_t used = input_size();
  ops()->ColumnSum(pass.rows, used, pass.dy, pass.accumulate ? 1 : 0,
                   d_weight_);
  if (!pass.accumulate) {
    ops()->Fill(length_ * dim_ - used, 0, d_weight_ + used);
  }
  gradient_ready(0);
  return pass.dy;
}

const float* TiedLinearLayer::Forward(const ForwardContext&, int64_t rows,
                                      const float* x, float* y) {
  const int64_t m = rows * (input_size() / dim());
  ops()->Gemm(false, true, m, tokens(), dim(), 1, x, weight_, 0, y);
  return y;
}

const float* TiedLinearLayer::Backward(const BackwardPass& pass,
                                       absl::FunctionRef<void(int)>) {
  const int64_t m = pass.rows * (input_size() / dim());
  if (pass.dx != nullptr) {
    ops()->Gemm(false, false, m, dim(), tokens(), 1, pass.dy, weight_, 0,
                pass.dx);
  }
  ops()->Gemm(true, false, tokens(), dim(), m, 1, pass.dy, pass.x,
              pass.accumulate ? 1 : 0, d_weight_);
  return pass.dx;
}

}  // namespace tributary
