#include "worker/model/layers/elementwise_layers.h"

namespace tributary {

const float* ActivationLayer::Forward(const ForwardContext&, int64_t rows,
                                      const float* x, float* y) {
  ops()->Activation(kind_, rows * input_size(), x, y);
  return y;
}

const float* ActivationLayer::Backward(const BackwardPass& pass,
                                       absl::FunctionRef<void(int)>) {
  ops()->ActivationBackward(kind_, pass.rows * input_size(), pass.x, pass.y,
                            pass.dy, pass.dx);
  return pass.dx;
}

const float* DropoutLayer::Forward(const ForwardContext& context, int64_t rows,
                                   const float* x, float* y) {
  active_ = context.training && p_ > 0;
  if (!active_) return x;
  key_.step = context.step;
  key_.first_row = context.first_row;
  key_.row_stride = context.row_stride;
  ops()->Dropout(rows, input_size(), p_, key_, x, y);
  return y;
}

const float* DropoutLayer::Backward(const BackwardPass& pass,
                                    absl::FunctionRef<void(int)>) {
  if (!active_) return pass.dy;
  ops()->Dropout(pass.rows, input_size(), p_, key_, pass.dy, pass.dx);
  return pass.dx;
}

}  // namespace tributary
