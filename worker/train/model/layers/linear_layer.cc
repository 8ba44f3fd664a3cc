// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_factory.h"

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

  const float* Forward(const ForwardContext&, int64_t rows, const float* x,
                       float* y) override {
    const int64_t m = rows * rows_per_sample_;
    ops()->Gemm(false, true, m, out_, in_, 1, x, weight(0), 0, y);
    if (weight(1) != nullptr) ops()->AddBias(m, out_, weight(1), y);
    return y;
  }

  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override {
    const int64_t m = pass.rows * rows_per_sample_;
    const float beta = pass.accumulate ? 1 : 0;
    if (pass.dx != nullptr) {
      ops()->Gemm(false, false, m, in_, out_, 1, pass.dy, weight(0), 0,
                  pass.dx);
    }
    if (weight(1) != nullptr) {
      ops()->ColumnSum(m, out_, pass.dy, beta, gradient(1));
      gradient_ready(1);
    }
    ops()->Gemm(true, false, out_, in_, m, 1, pass.dy, pass.x, beta,
                gradient(0));
    gradient_ready(0);
    return pass.dx;
  }

 private:
  const int64_t in_;
  const int64_t out_;
  const int64_t rows_per_sample_;
};

}  // namespace

void AddLinearLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kLinear, [](const LayerInit& init) -> LayerOr {
    return std::make_unique<LinearLayer>(init);
  });
}

}  // namespace tributary
