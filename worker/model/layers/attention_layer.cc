#include "worker/model/layers/attention_layer.h"

#include <cmath>

#include "common/status/status_macros.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<Layer>> AttentionLayer::Create(
    Ops* ops, Shape shape, const Options& options, int64_t max_rows,
    Scratch* scratch) {
  std::unique_ptr<AttentionLayer> layer(
      new AttentionLayer(ops, std::move(shape), options));
  layer->scratch_ = scratch;
  const int64_t size = max_rows * layer->time_ * layer->width_;
  const AttentionShape largest = layer->ShapeFor(max_rows);
  // The backward pass keeps the gradients of context and qkv there as well.
  scratch->Reserve(4 * size + ops->AttentionScratch(largest));
  TRIBUTARY_ASSIGN_OR_RETURN(layer->qkv_,
                             DeviceArray<float>::Allocate(ops, 3 * size));
  TRIBUTARY_ASSIGN_OR_RETURN(layer->context_,
                             DeviceArray<float>::Allocate(ops, size));
  TRIBUTARY_ASSIGN_OR_RETURN(layer->log_sum_,
                             DeviceArray<float>::Allocate(ops, largest.rows()));
  return layer;
}

AttentionShape AttentionLayer::ShapeFor(int64_t rows) const {
  AttentionShape s;
  s.batch = rows;
  s.heads = options_.heads;
  s.queries = s.keys = time_;
  s.dim = options_.head_dim;
  s.causal = options_.causal;
  s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.dim)));
  s.query = s.key = {time_ * 3 * width_, 3 * width_, s.dim};
  s.out = {time_ * width_, width_, s.dim};
  return s;
}

ParameterSpecs AttentionLayer::parameters() const {
  ParameterSpecs specs = {{"in_proj_weight", {3 * width_, dim_}}};
  if (options_.qkv_bias) specs.push_back({"in_proj_bias", {3 * width_}});
  specs.push_back({"out_proj.weight", {dim_, width_}});
  if (options_.out_bias) specs.push_back({"out_proj.bias", {dim_}});
  return specs;
}

void AttentionLayer::Bind(absl::Span<float* const> weights,
                          absl::Span<float* const> gradients) {
  in_weight_ = weights.front();
  d_in_weight_ = gradients.front();
  if (options_.qkv_bias) {
    in_bias_ = weights[1];
    d_in_bias_ = gradients[1];
  }
  const int first_out = options_.qkv_bias ? 2 : 1;
  out_weight_ = weights[first_out];
  d_out_weight_ = gradients[first_out];
  if (options_.out_bias) {
    out_bias_ = weights.back();
    d_out_bias_ = gradients.back();
  }
}

const float* AttentionLayer::Forward(const ForwardContext&, int64_t rows,
                                     const float* x, float* y) {
  const int64_t m = rows * time_;
  float* qkv = qkv_.data();
  ops()->Gemm(false, true, m, 3 * width_, dim_, 1, x, in_weight_, 0, qkv);
  if (options_.qkv_bias) ops()->AddBias(m, 3 * width_, in_bias_, qkv);
  ops()->Attention(ShapeFor(rows), qkv, qkv + width_, qkv + 2 * width_,
                   context_.data(), log_sum_.data(), scratch_->data());
  ops()->Gemm(false, true, m, dim_, width_, 1, context_.data(), out_weight_, 0,
              y);
  if (options_.out_bias) ops()->AddBias(m, dim_, out_bias_, y);
  return y;
}

const float* AttentionLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  const int64_t m = pass.rows * time_;
  const float beta = pass.accumulate ? 1 : 0;
  const int first_out = options_.qkv_bias ? 2 : 1;
  const float* qkv = qkv_.data();
  float* d_context = scratch_->data();
  float* d_qkv = d_context + m * width_;
  float* scratch = d_qkv + 3 * m * width_;

  ops()->Gemm(false, false, m, width_, dim_, 1, pass.dy, out_weight_, 0,
              d_context);
  if (options_.out_bias) {
    ops()->ColumnSum(m, dim_, pass.dy, beta, d_out_bias_);
    gradient_ready(first_out + 1);
  }
  ops()->Gemm(true, false, dim_, width_, m, 1, pass.dy, context_.data(), beta,
              d_out_weight_);
  gradient_ready(first_out);
  ops()->AttentionBackward(ShapeFor(pass.rows), qkv, qkv + width_,
                           qkv + 2 * width_, context_.data(), log_sum_.data(),
                           d_context, d_qkv, d_qkv + width_, d_qkv + 2 * width_,
                           scratch);
  if (pass.dx != nullptr) {
    ops()->Gemm(false, false, m, dim_, 3 * width_, 1, d_qkv, in_weight_, 0,
                pass.dx);
  }
  if (options_.qkv_bias) {
    ops()->ColumnSum(m, 3 * width_, d_qkv, beta, d_in_bias_);
    gradient_ready(1);
  }
  ops()->Gemm(true, false, 3 * width_, dim_, m, 1, d_qkv, pass.x, beta,
              d_in_weight_);
  gradient_ready(0);
  return pass.dx;
}

}  // namespace tributary
