// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "worker/train/model/layer.h"
#include "worker/train/model/scratch.h"
#include "worker/train/model/tensor_group.h"

namespace tributary {

// This rank's part of a layer (an ordinary layer of the part's size) and the
// exchanges of the group around it (Megatron-LM's f and g, Shoeybi et al.
// 2019):
//   sum_input_gradient  every rank has the whole input; the input gradients of
//                       the parts are summed (f)
//   sum_output          the outputs of the parts are summed (g), then the bias,
//                       which every rank has, is added once
//   gather              the outputs of the parts, split by EvenCut along the
//                       last extent, are joined on all ranks
// The parameters are those of the part, with the names of the whole layer's.
class ParallelLayer final : public Layer {
 public:
  struct Options {
    TensorGroup* group = nullptr;  // must outlive the layer
    bool sum_input_gradient = false;
    bool sum_output = false;
    bool gather = false;
    int64_t max_rows = 0;
    Scratch* scratch = nullptr;
  };

  // output_shape: with sum_output or gather the whole layer's, else the part's.
  // bias: added to the sum; it becomes the last parameter; may be empty.
  ParallelLayer(Ops* ops, std::unique_ptr<Layer> part, Shape output_shape,
                const ParameterSpecs& bias, const Options& options);

  void Bind(absl::Span<float* const> weights,
            absl::Span<float* const> gradients) override;
  int64_t num_tokens() const override { return part_->num_tokens(); }
  const std::string& tied_to() const override { return part_->tied_to(); }
  void BindTied(float* weight, float* gradient) override {
    part_->BindTied(weight, gradient);
  }
  bool ShareGradient() override { return part_->ShareGradient(); }
  const float* Forward(const ForwardContext& context, int64_t rows,
                       const float* x, float* y) override;
  const float* Backward(const BackwardPass& pass,
                        absl::FunctionRef<void(int)> gradient_ready) override;

 private:
  int64_t features() const { return output_shape().back(); }
  // The number of rows when samples are seen as a matrix of their last extent.
  int64_t MatrixRows(int64_t rows) const {
    return rows * (output_size() / features());
  }
  int64_t FirstFeature(int rank) const;
  void Gather(int64_t rows, float* y);

  const std::unique_ptr<Layer> part_;
  const Options options_;
  int num_part_parameters_ = 0;

  float* bias_ = nullptr;
  float* d_bias_ = nullptr;
};

}  // namespace tributary
