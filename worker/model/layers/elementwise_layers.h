#pragma once

#include <utility>

#include "worker/model/layer.h"

namespace tributary {

// relu, gelu (erf, tanh), sigmoid, tanh, silu.
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(Ops* ops, Shape shape, ActivationKind kind)
      : Layer(ops, shape, shape), kind_(kind) {}

  // The derivatives of relu, sigmoid and tanh follow from y alone.
  bool ReadsInput() const override { return !ReadsOutput(); }
  bool ReadsOutput() const override {
    return kind_ == ActivationKind::kRelu ||
           kind_ == ActivationKind::kSigmoid || kind_ == ActivationKind::kTanh;
  }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  const ActivationKind kind_;
};

// Zeroes elements with probability p while training and scales the others by
// 1 / (1 - p); changes nothing in evaluation. `key` names the model's seed, the
// layer, and the columns that are here where the sample is cut.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(Ops* ops, Shape shape, float p, const DropoutKey& key)
      : Layer(ops, shape, shape), p_(p), key_(key) {}

  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  const float p_;
  DropoutKey key_;       // of the last forward pass
  bool active_ = false;  // in the last forward pass
};

// Joins the extents of a sample into one; moves nothing.
class FlattenLayer final : public Layer {
 public:
  FlattenLayer(Ops* ops, Shape shape)
      : Layer(ops, shape, {NumElements(shape)}) {}

  bool PassesThrough() const override { return true; }
  const float* Forward(const ForwardContext&, int64_t /*rows*/, const float* x,
                       float* /*y*/) override {
    return x;
  }
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)>) override {
    return pass.dy;
  }
};

}  // namespace tributary
