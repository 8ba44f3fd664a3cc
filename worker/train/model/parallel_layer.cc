// SPDX-License-Identifier: Apache-2.0
#include "worker/train/model/parallel_layer.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/parameter_slice.h"

namespace tributary {

namespace {

ParameterSpecs Joined(ParameterSpecs parameters, const ParameterSpecs& more) {
  parameters.insert(parameters.end(), more.begin(), more.end());
  return parameters;
}

}  // namespace

ParallelLayer::ParallelLayer(Ops* ops, std::unique_ptr<Layer> part,
                             Shape output_shape, const ParameterSpecs& bias,
                             const Options& options)
    : Layer(ops, part->input_shape(), std::move(output_shape),
            Joined(part->parameters(), bias),
            {.reads_input = part->memory().reads_input}),
      part_(std::move(part)),
      options_(options),
      num_part_parameters_(static_cast<int>(part_->parameters().size())) {
  TRIBUTARY_CHECK(bias.size() <= 1);
  if (options_.gather) {
    options_.scratch->Reserve(options_.max_rows * output_size());
  }
}

void ParallelLayer::Bind(absl::Span<float* const> weights,
                         absl::Span<float* const> gradients) {
  part_->Bind(weights.first(num_part_parameters_),
              gradients.first(num_part_parameters_));
  if (weights.size() == static_cast<size_t>(num_part_parameters_)) return;
  bias_ = weights.back();
  d_bias_ = gradients.back();
}

int64_t ParallelLayer::FirstFeature(int rank) const {
  return EvenCut(features(), options_.group->size(), rank);
}

const float* ParallelLayer::Forward(const ForwardContext& context, int64_t rows,
                                    const float* x, float* y) {
  const int64_t m = MatrixRows(rows);
  TensorGroup& group = *options_.group;
  float* own = y;
  if (options_.gather) {
    own = options_.scratch->data() + m * FirstFeature(group.rank());
  }
  part_->Forward(context, rows, x, own);
  if (options_.gather) Gather(rows, y);
  if (options_.sum_output) group.AllReduce(rows * output_size(), y);
  if (bias_ != nullptr) ops()->AddBias(m, features(), bias_, y);
  return y;
}

// Gathers the ranks' parts one after the other in scratch, then copies each
// part's columns to their place in y.
void ParallelLayer::Gather(int64_t rows, float* y) {
  const int64_t m = MatrixRows(rows);
  TensorGroup& group = *options_.group;
  std::vector<int64_t> bounds;
  for (int r = 0; r <= group.size(); ++r) {
    bounds.push_back(m * FirstFeature(r));
  }
  float* parts = options_.scratch->data();
  group.AllGather(bounds, parts);
  for (int r = 0; r < group.size(); ++r) {
    const int64_t first = FirstFeature(r), n = FirstFeature(r + 1) - first;
    ops()->CopyMatrix(m, n, parts + bounds[r], n, y + first, features());
  }
}

const float* ParallelLayer::Backward(
    const BackwardPass& pass, absl::FunctionRef<void(int)> gradient_ready) {
  const int64_t m = MatrixRows(pass.rows);
  TensorGroup& group = *options_.group;
  if (bias_ != nullptr) {
    ops()->ColumnSum(m, features(), pass.dy, pass.accumulate ? 1 : 0, d_bias_);
    gradient_ready(num_part_parameters_);
  }
  BackwardPass own = pass;
  if (options_.gather) {
    const int64_t first = FirstFeature(group.rank());
    const int64_t n = FirstFeature(group.rank() + 1) - first;
    ops()->CopyMatrix(m, n, pass.dy + first, features(),
                      options_.scratch->data(), n);
    own.dy = options_.scratch->data();
  }
  const float* dx = part_->Backward(own, gradient_ready);
  if (options_.sum_input_gradient && pass.dx != nullptr) {
    group.AllReduce(pass.rows * input_size(), pass.dx);
  }
  return dx;
}

}  // namespace tributary
