// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/tensor.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The costs of a layer, for one sample, as the CPU's kernels compute it. A
// multiplication and an addition are two FLOPs, so [m, k] times [k, n] has
// 2 m n k; what is done element by element is counted roughly
// (docs/parallelism.md has the table).
struct LayerCost {
  std::string name;  // "3", or "3.body.0" of one within a residual
  std::string kind;  // "linear", as the job file writes it
  Shape input_shape;
  Shape output_shape;
  // The tensors of ModelParameters that the layer owns, and their elements. A
  // tied layer owns none.
  int first_parameter = 0;
  int num_parameters = 0;
  int64_t parameter_elements = 0;

  double forward_flops = 0;
  // Less for a layer whose input needs no gradient.
  double backward_flops = 0;
  // Memory from the forward pass to the end of the layer's backward pass: the
  // output, unless it overwrites the input, and all else that the layer keeps.
  // Four bytes each.
  int64_t kept_elements = 0;
  // Memory that a residual's backward passes need for gradients within it.
  int64_t workspace_elements = 0;

  // A residual's layers; the residual's numbers above include theirs.
  std::vector<LayerCost> body;
  std::vector<LayerCost> shortcut;

  int64_t output_elements() const { return NumElements(output_shape); }
};

struct ModelCosts {
  v1::ModelSpec model;            // the model that has these costs
  std::vector<LayerCost> layers;  // of model.sequential, in forward order
  std::vector<int64_t> parameter_sizes;  // elements of ModelParameters' tensors
  // Memory of gradients that pass between layers, and the largest scratch.
  int64_t workspace_elements = 0;

  int64_t parameter_elements() const;
  double forward_flops() const;
  double backward_flops() const;
};

// The costs of a resolved model for samples of `sample_shape`. InvalidArgument
// names the layer that does not fit, what it wants and what it gets.
absl::StatusOr<ModelCosts> CostsOfModel(const v1::ModelSpec& model,
                                        const Shape& sample_shape);

}  // namespace tributary
