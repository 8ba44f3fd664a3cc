#include "worker/model/layers/residual_layer.h"

namespace tributary {
namespace {

void AppendNamed(const char* branch, const ParameterSpecs& from,
                 ParameterSpecs* to) {
  for (ParameterSpec spec : from) {
    spec.name = branch + spec.name;
    to->push_back(std::move(spec));
  }
}

}  // namespace

ParameterSpecs ResidualLayer::parameters() const {
  ParameterSpecs specs;
  AppendNamed("body.", body_->parameters(), &specs);
  if (shortcut_) AppendNamed("shortcut.", shortcut_->parameters(), &specs);
  return specs;
}

void ResidualLayer::Bind(absl::Span<float* const> weights,
                         absl::Span<float* const> gradients) {
  const size_t split = body_->parameters().size();
  body_->Bind(weights.first(split), gradients.first(split));
  if (shortcut_) {
    shortcut_->Bind(weights.subspan(split), gradients.subspan(split));
  }
}

const float* ResidualLayer::Forward(const ForwardContext& context, int64_t rows,
                                    const float* x, float* y) {
  const float* around = shortcut_ ? shortcut_->Forward(context, rows, x) : x;
  const float* through = body_->Forward(context, rows, x);
  ops()->Add(1, rows * output_size(), through, around, y);
  return y;
}

const float* ResidualLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  const int split = static_cast<int>(body_->parameters().size());
  const float* around = pass.dy;
  if (shortcut_) {
    around = shortcut_->Backward(pass.dy, pass.accumulate, [&](int parameter) {
      gradient_ready(split + parameter);
    });
  }
  const float* through =
      body_->Backward(pass.dy, pass.accumulate, gradient_ready);
  ops()->Add(1, pass.rows * input_size(), through, around, pass.dx);
  return pass.dx;
}

}  // namespace tributary
