#include <cmath>

#include "common/status/status_macros.h"
#include "worker/model/device_array.h"
#include "worker/model/layer_factory.h"

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

  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override {
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string& name = parameters()[i].name;
      if (name == "in_proj_weight") {
        in_weight_ = weights[i];
        d_in_weight_ = gradients[i];
      } else if (name == "in_proj_bias") {
        in_bias_ = weights[i];
        d_in_bias_ = gradients[i];
      } else if (name == "out_proj.weight") {
        out_weight_ = weights[i];
        d_out_weight_ = gradients[i];
      } else {
        out_bias_ = weights[i];
        d_out_bias_ = gradients[i];
      }
    }
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    const int64_t m = rows * time_;
    float* qkv = qkv_.data();
    ops()->Gemm(false, true, m, 3 * width_, dim_, 1, x, in_weight_, 0, qkv);
    if (in_bias_ != nullptr) ops()->AddBias(m, 3 * width_, in_bias_, qkv);
    ops()->Attention(ShapeFor(rows), qkv, qkv + width_, qkv + 2 * width_,
                     context_.data(), log_sum_.data(), scratch_->data());
    ops()->Gemm(false, true, m, dim_, width_, 1, context_.data(), out_weight_,
                0, y);
    if (out_bias_ != nullptr) ops()->AddBias(m, dim_, out_bias_, y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    const int64_t m = pass.rows * time_;
    const float beta = pass.accumulate ? 1 : 0;
    const int first_out = in_bias_ != nullptr ? 2 : 1;
    const float* qkv = qkv_.data();
    float* d_context = scratch_->data();
    float* d_qkv = d_context + m * width_;
    float* scratch = d_qkv + 3 * m * width_;

    ops()->Gemm(false, false, m, width_, dim_, 1, pass.dy, out_weight_, 0,
                d_context);
    if (out_bias_ != nullptr) {
      ops()->ColumnSum(m, dim_, pass.dy, beta, d_out_bias_);
      gradient_ready(first_out + 1);
    }
    ops()->Gemm(true, false, dim_, width_, m, 1, pass.dy, context_.data(), beta,
                d_out_weight_);
    gradient_ready(first_out);
    ops()->AttentionBackward(ShapeFor(pass.rows), qkv, qkv + width_,
                             qkv + 2 * width_, context_.data(), log_sum_.data(),
                             d_context, d_qkv, d_qkv + width_,
                             d_qkv + 2 * width_, scratch);
    if (pass.dx != nullptr) {
      ops()->Gemm(false, false, m, dim_, 3 * width_, 1, d_qkv, in_weight_, 0,
                  pass.dx);
    }
    if (in_bias_ != nullptr) {
      ops()->ColumnSum(m, 3 * width_, d_qkv, beta, d_in_bias_);
      gradient_ready(1);
    }
    ops()->Gemm(true, false, 3 * width_, dim_, m, 1, d_qkv, pass.x, beta,
                d_in_weight_);
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
        scratch_(init.options.scratch) {}

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

  DeviceArray<float> qkv_;      // [rows, time, 3 width], of the last forward
  DeviceArray<float> context_;  // [rows, time, width]
  DeviceArray<float> log_sum_;  // [rows, heads, time]

  float* in_weight_ = nullptr;
  float* in_bias_ = nullptr;
  float* out_weight_ = nullptr;
  float* out_bias_ = nullptr;
  float* d_in_weight_ = nullptr;
  float* d_in_bias_ = nullptr;
  float* d_out_weight_ = nullptr;
  float* d_out_bias_ = nullptr;
};

}  // namespace

void AddAttentionLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kAttention, &AttentionLayer::Create);
}

}  // namespace tributary
