// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "common/status/status_macros.h"
#include "worker/rank/collective/device_array.h"
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// Multi-head self-attention, as torch.nn.MultiheadAttention with its input as
// query, key and value. x, y: [time, dim]. in_proj_weight: [3 width, dim] and
// in_proj_bias: [3 width] (or none) make q, k and v; out_proj.weight: [dim,
// width], out_proj.bias: [dim] (or none). width, the sum over all heads, is
// dim, except on a rank that has only some heads.
class AttentionLayer final : public Layer {
 public:
  static LayerOr Create(const LayerInit& init) {
    std::unique_ptr<AttentionLayer> layer(new AttentionLayer(init));
    Ops* const ops = init.options.ops;
    const int64_t rows = init.options.max_rows;
    const int64_t size = rows * layer->time_ * layer->width_;
    const AttentionShape largest = layer->ShapeFor(rows);
    // The backward pass also keeps the gradients of context and qkv in scratch.
    init.options.scratch->Reserve(4 * size + ops->AttentionScratch(largest));
    TRIBUTARY_ASSIGN_OR_RETURN(layer->qkv_,
                               DeviceArray<float>::Allocate(ops, 3 * size));
    TRIBUTARY_ASSIGN_OR_RETURN(layer->context_,
                               DeviceArray<float>::Allocate(ops, size));
    TRIBUTARY_ASSIGN_OR_RETURN(
        layer->log_sum_, DeviceArray<float>::Allocate(ops, largest.rows()));
    return layer;
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    const int64_t m = rows * time_;
    float* qkv = qkv_.data();
    ops()->Gemm(false, true, m, 3 * width_, dim_, 1, x, weight(0), 0, qkv);
    if (has_in_bias()) ops()->AddBias(m, 3 * width_, weight(1), qkv);
    ops()->Attention(ShapeFor(rows), qkv, qkv + width_, qkv + 2 * width_,
                     context_.data(), log_sum_.data(), scratch_->data());
    ops()->Gemm(false, true, m, dim_, width_, 1, context_.data(),
                weight(out_weight_), 0, y);
    if (has_out_bias()) ops()->AddBias(m, dim_, weight(out_weight_ + 1), y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    const int64_t m = pass.rows * time_;
    const float beta = pass.accumulate ? 1 : 0;
    const float* qkv = qkv_.data();
    float* d_context = scratch_->data();
    float* d_qkv = d_context + m * width_;
    float* scratch = d_qkv + 3 * m * width_;

    ops()->Gemm(false, false, m, width_, dim_, 1, pass.dy, weight(out_weight_),
                0, d_context);
    if (has_out_bias()) {
      ops()->ColumnSum(m, dim_, pass.dy, beta, gradient(out_weight_ + 1));
      gradient_ready(out_weight_ + 1);
    }
    ops()->Gemm(true, false, dim_, width_, m, 1, pass.dy, context_.data(), beta,
                gradient(out_weight_));
    gradient_ready(out_weight_);
    ops()->AttentionBackward(ShapeFor(pass.rows), qkv, qkv + width_,
                             qkv + 2 * width_, context_.data(), log_sum_.data(),
                             d_context, d_qkv, d_qkv + width_,
                             d_qkv + 2 * width_, scratch);
    if (pass.dx != nullptr) {
      ops()->Gemm(false, false, m, dim_, 3 * width_, 1, d_qkv, weight(0), 0,
                  pass.dx);
    }
    if (has_in_bias()) {
      ops()->ColumnSum(m, 3 * width_, d_qkv, beta, gradient(1));
      gradient_ready(1);
    }
    ops()->Gemm(true, false, 3 * width_, dim_, m, 1, d_qkv, pass.x, beta,
                gradient(0));
    gradient_ready(0);
    return pass.dx;
  }

 private:
  explicit AttentionLayer(const LayerInit& init)
      : Layer(init),
        time_(init.input_shape[0]),
        dim_(init.input_shape[1]),
        width_(init.parameters[0].shape[0] / 3),
        head_dim_(dim_ / init.spec.attention().heads()),
        heads_(width_ / head_dim_),
        causal_(init.spec.attention().causal()),
        scratch_(init.options.scratch),
        out_weight_(init.spec.attention().qkv_bias() ? 2 : 1) {}

  bool has_in_bias() const { return out_weight_ == 2; }
  bool has_out_bias() const { return weight(out_weight_ + 1) != nullptr; }

  AttentionShape ShapeFor(int64_t rows) const {
    AttentionShape s;
    s.batch = rows;
    s.heads = heads_;
    s.queries = s.keys = time_;
    s.dim = head_dim_;
    s.causal = causal_;
    s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.dim)));
    s.query = s.key = {time_ * 3 * width_, 3 * width_, s.dim};
    s.out = {time_ * width_, width_, s.dim};
    return s;
  }

  const int64_t time_;
  const int64_t dim_;
  const int64_t width_;  // of all heads
  const int64_t head_dim_;
  const int64_t heads_;
  const bool causal_;
  const Scratch* const scratch_;
  const int out_weight_;  // the parameter; a bias may follow

  DeviceArray<float> qkv_;      // [rows, time, 3 width], of the last forward
  DeviceArray<float> context_;  // [rows, time, width]
  DeviceArray<float> log_sum_;  // [rows, heads, time]
};

}  // namespace

void AddAttentionLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kAttention, &AttentionLayer::Create);
}

}  // namespace tributary
