// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/base/tensor.h"
#include "common/layers/layer_kind.h"
#include "kernels/ops.h"

namespace tributary {

struct LayerInit;  // worker/train/model/layer_factory.h

// The position of a forward pass in training. Local row i is row first_row + i
// * row_stride of the step's global batch. Dropout draws by that row, so any
// number of workers drops the same elements.
struct ForwardContext {
  bool training = false;
  int64_t step = 0;
  int64_t first_row = 0;
  int64_t row_stride = 1;
  // The batch's share of this worker's samples in the step.
  double step_share = 1;
};

// The arrays of one layer's backward pass, on the device.
struct BackwardPass {
  int64_t rows = 0;
  const float* x = nullptr;  // as Forward got it; valid if memory().reads_input
  const float* y =
      nullptr;  // as Forward left it; valid if memory().reads_output
  const float* dy = nullptr;  // [rows, output]
  float* dx = nullptr;        // [rows, input]; null for the first layer with
                              // parameters, unless always_writes_input_gradient
  bool accumulate = false;    // add to the gradients or overwrite them
};

// One layer of a sequential model. The model allocates weights, gradients and
// activations; the layer owns only other memory that its backward pass needs.
// x: [rows, input], y: [rows, output], row-major; a row is one sample.
class Layer {
 public:
  // Shapes are those of one sample. parameters: in forward order, named without
  // the layer's index: "weight".
  Layer(Ops* ops, Shape input_shape, Shape output_shape,
        ParameterSpecs parameters, const LayerMemory& memory)
      : ops_(ops),
        input_shape_(std::move(input_shape)),
        output_shape_(std::move(output_shape)),
        parameters_(std::move(parameters)),
        memory_(memory) {}
  explicit Layer(const LayerInit& init);
  virtual ~Layer() = default;

  const Shape& input_shape() const { return input_shape_; }
  const Shape& output_shape() const { return output_shape_; }
  int64_t input_size() const { return NumElements(input_shape_); }
  int64_t output_size() const { return NumElements(output_shape_); }
  const ParameterSpecs& parameters() const { return parameters_; }
  const LayerMemory& memory() const { return memory_; }

  // Sets the arrays of the parameters and of their gradients. Called once.
  virtual void Bind(absl::Span<float* const> weights,
                    absl::Span<float* const> gradients) {
    weights_.assign(weights.begin(), weights.end());
    gradients_.assign(gradients.begin(), gradients.end());
  }

  // The number of tokens of an embedding, whose ids are below it; else 0.
  virtual int64_t num_tokens() const { return 0; }
  // The name of an earlier layer's parameter that this layer uses; else empty.
  virtual const std::string& tied_to() const {
    static const std::string none;
    return none;
  }
  // Sets the parameter tied_to(), which then is the layer's first.
  virtual void BindTied(float* weight, float* gradient) {
    Layer::Bind({weight}, {gradient});
  }
  // Asks the layer that owns a tied parameter to add to the gradient instead of
  // overwriting it: the tied layer's backward pass runs first. False when the
  // layer cannot share its gradient.
  virtual bool ShareGradient() { return false; }

  // Returns the output: y, or x when the layer changes nothing.
  virtual const float* Forward(const ForwardContext& context, int64_t rows,
                               const float* x, float* y) = 0;

  // Returns the gradient of x: dx, or dy when the layer changes nothing. Calls
  // gradient_ready(i) when parameter i's gradient is enqueued, last parameter
  // first. From then on parameter i's weight may change at any time and must
  // not be read.
  virtual const float* Backward(
      const BackwardPass& pass,
      absl::FunctionRef<void(int)> gradient_ready) = 0;

 protected:
  Ops* ops() const { return ops_; }
  // Parameter i and its gradient; null where the layer has no such parameter.
  float* weight(size_t i) const {
    return i < weights_.size() ? weights_[i] : nullptr;
  }
  float* gradient(size_t i) const {
    return i < gradients_.size() ? gradients_[i] : nullptr;
  }

 private:
  Ops* const ops_;
  const Shape input_shape_;
  const Shape output_shape_;
  const ParameterSpecs parameters_;
  const LayerMemory memory_;
  std::vector<float*> weights_;
  std::vector<float*> gradients_;
};

}  // namespace tributary
