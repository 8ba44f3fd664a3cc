#include "worker/model/layers/pool_layers.h"

namespace tributary {

const float* MaxPoolLayer::Forward(const ForwardContext&, int64_t rows,
                                   const float* x, float* y) {
  ops()->MaxPool(window_, Planes(rows), x, y, argmax_.data());
  return y;
}

const float* MaxPoolLayer::Backward(const BackwardPass& pass,
                                    absl::FunctionRef<void(int)>) {
  ops()->MaxPoolBackward(window_, Planes(pass.rows), pass.dy, argmax_.data(),
                         pass.dx);
  return pass.dx;
}

const float* AvgPoolLayer::Forward(const ForwardContext&, int64_t rows,
                                   const float* x, float* y) {
  ops()->AveragePool(window_, count_include_pad_, Planes(rows), x, y);
  return y;
}

const float* AvgPoolLayer::Backward(const BackwardPass& pass,
                                    absl::FunctionRef<void(int)>) {
  ops()->AveragePoolBackward(window_, count_include_pad_, Planes(pass.rows),
                             pass.dy, pass.dx);
  return pass.dx;
}

}  // namespace tributary
