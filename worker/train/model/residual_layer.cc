// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/residual_layer.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

void AppendNamed(const char* branch, const ParameterSpecs& from,
                 ParameterSpecs* to) {
  for (ParameterSpec spec : from) {
    spec.name = branch + spec.name;
    to->push_back(std::move(spec));
  }
}

// Creates the layers of one branch and their memory.
absl::StatusOr<std::unique_ptr<LayerStack>> CreateBranch(
    const char* branch, const LayerStack::Specs& specs,
    const Shape& input_shape, const LayerOptions& options) {
  LayerOptions own = options;
  own.name = absl::StrCat(options.name, ".", branch, ".");
  own.first = false;
  // Keeps dropout keys apart from those of outer layers and the other branch.
  own.dropout_key = static_cast<int32_t>(
      (static_cast<uint32_t>(options.dropout_key) + 1) * 1024 +
      (branch[0] == 's' ? 512 : 0));
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<LayerStack> stack,
                             LayerStack::Create(specs, input_shape, own));
  TRIBUTARY_RETURN_IF_ERROR(stack->Place(/*input_gradient=*/true));
  return stack;
}

}  // namespace

ParameterSpecs ResidualLayer::ParametersOf(const LayerStack& body,
                                           const LayerStack* shortcut) {
  ParameterSpecs specs;
  AppendNamed("body.", body.parameters(), &specs);
  if (shortcut != nullptr) {
    AppendNamed("shortcut.", shortcut->parameters(), &specs);
  }
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

LayerOr CreateResidual(const v1::ResidualSpec& spec, const Shape& input_shape,
                       const LayerOptions& options) {
  if (spec.body().empty()) {
    return absl::InvalidArgumentError("wants at least one layer in its body");
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<LayerStack> body,
      CreateBranch("body", spec.body(), input_shape, options));
  std::unique_ptr<LayerStack> shortcut;
  if (!spec.shortcut().empty()) {
    TRIBUTARY_ASSIGN_OR_RETURN(
        shortcut,
        CreateBranch("shortcut", spec.shortcut(), input_shape, options));
  }
  const Shape& around = shortcut ? shortcut->output_shape() : input_shape;
  const Shape output_shape = body->output_shape();
  if (output_shape != around) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its body makes samples of shape ", SampleText(output_shape), ", but ",
        shortcut ? "its shortcut " : "its input has ", SampleText(around)));
  }
  return std::make_unique<ResidualLayer>(options.ops, input_shape, output_shape,
                                         std::move(body), std::move(shortcut));
}

}  // namespace tributary
