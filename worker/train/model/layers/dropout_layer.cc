// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/layer_factory.h"

namespace tributary {
namespace {

// Zeroes elements with probability p while training and scales the others by
// 1 / (1 - p); changes nothing in evaluation.
class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(const LayerInit& init)
      : Layer(init), p_(static_cast<float>(init.spec.dropout().p())) {
    key_.seed = init.options.seed;
    key_.layer = init.options.dropout_key;
    if (init.part.cut != LayerCut::kWithin) return;
    // This rank has only these columns of each sample.
    key_.first_column = init.part.begin;
    key_.run = init.part.size();
    key_.run_stride = init.part.extent;
  }

  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override {
    active_ = context.training && p_ > 0;
    if (!active_) return x;
    key_.step = context.step;
    key_.first_row = context.first_row;
    key_.row_stride = context.row_stride;
    ops()->Dropout(rows, input_size(), p_, key_, x, y);
    return y;
  }
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    if (!active_) return pass.dy;
    ops()->Dropout(pass.rows, input_size(), p_, key_, pass.dy, pass.dx);
    return pass.dx;
  }

 private:
  const float p_;
  DropoutKey key_;       // of the last forward pass
  bool active_ = false;  // in the last forward pass
};

}  // namespace

void AddDropoutLayer(LayerCreators* creators) {
  creators->Add(v1::LayerSpec::kDropout, [](const LayerInit& init) -> LayerOr {
    return std::make_unique<DropoutLayer>(init);
  });
}

}  // namespace tributary
