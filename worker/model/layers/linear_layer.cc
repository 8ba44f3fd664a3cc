#include "worker/model/layer_factory.h"

namespace tributary {
namespace {

// y = x w^T + b over the last extent, as torch.nn.Linear. weight: [out, in],
// bias: [out] or none.
class LinearLayer final : public Layer {
 public:
  explicit LinearLayer(const LayerInit& init)
      : Layer(init),
        in_(init.parameters[0].shape[1]),
        out_(init.parameters[0].shape[0]),
        rows_per_sample_(input_size() / in_) {}

  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override {
    weight_ = weights[0];
    d_weight_ = gradients[0];
    if (weights.size() == 1) return;
    bias_ = weights[1];
    d_bias_ = gradients[1];
  }

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    const int64_t m = rows * rows_per_sample_;
    ops()->Gemm(false, true, m, out_, in_, 1, x, weight_, 0, y);
    if (bias_ != nullptr) ops()->AddBias(m, out_, bias_, y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    const int64_t m = pass.rows * rows_per_sample_;
    const float beta = pass.accumulate ? 1 : 0;
    if (pass.dx != nullptr) {
      ops()->Gemm(false, false, m, in_, out_, 1, pass.dy, weight_, 0, pass.dx);
    }
    if (bias_ != nullptr) {
      ops()->ColumnSum(m, out_, pass.dy, beta, d_bias_);
      gradient_ready(1);
    }
    ops()->Gemm(true, false, out_, in_, m, 1, pass.dy, pass.x, beta, d_weight_);
    gradient_ready(0);
    return pass.dx;
  }

 private:
  const int64_t in_;
  const int64_t out_;
  const int64_t rows_per_sample_;

  float* weight_ = nullptr;
  float* bias_ = nullptr;
  float* d_weight_ = nullptr;
  float* d_bias_ = nullptr;
};

}  // namespace

void AddLinearLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kLinear, [](const LayerInit& init) -> LayerOr {
    return std::make_unique<LinearLayer>(init);
  });
}

}  // namespace tributary
