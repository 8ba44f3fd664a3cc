// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "common/optimizer/factored_slice.h"
#include "common/optimizer/optimizer_step.h"
#include "kernels/ops/attention_ops.h"
#include "kernels/ops/embedding_ops.h"
#include "kernels/ops/image_ops.h"
#include "kernels/ops/loss_ops.h"
#include "kernels/ops/matrix_ops.h"
#include "kernels/ops/memory_ops.h"
#include "kernels/ops/norm_ops.h"

namespace tributary {

// The math of a training step on one device. Pointers refer to memory of this
// device; tensors are float32, row-major and contiguous. A call enqueues work
// and returns; Synchronize waits and reports the first fault since its last
// call. Shapes are not checked here: worker/train/model checks them when it
// builds a model. Only one thread at a time may use an object, except that the
// CPU's is thread-safe. "Adds to y" means y += the result.
class Ops : public MemoryOps,
            public MatrixOps,
            public ImageOps,
            public NormOps,
            public AttentionOps,
            public LossOps,
            public EmbeddingOps {
 public:
  // Aggregation and update.

  // out = the sum over r, in order, of weights[r] * parts[r]. parts and weights
  // are host arrays of `count` entries. The order of additions is part of the
  // contract, since bit-exact replay depends on it. On the host a part may
  // start at any byte, as received buffers do, and parts[0] may be `out`.
  virtual void WeightedSum(int64_t n, int count, const float* const* parts,
                           const float* weights, float* out) = 0;
  // One optimizer step over n elements: reads gradient, weight_in and state,
  // writes weight_out (may equal weight_in) and state.
  virtual void OptimizerUpdate(const OptimizerStep& step, int64_t n,
                               const float* gradient, const float* weight_in,
                               float* weight_out, float* const* state) = 0;
  // An optimizer with a trust ratio takes two phases, between which the caller
  // computes the norms of the whole tensor. OptimizerDirection updates the
  // states and writes the direction. ApplyDirection computes weight_out =
  // weight_scale * weight_in - rate * direction; any of the pointers may be
  // equal.
  virtual void OptimizerDirection(const OptimizerStep& step, int64_t n,
                                  const float* gradient, const float* weight,
                                  float* direction, float* const* state) = 0;
  virtual void ApplyDirection(int64_t n, float rate, float weight_scale,
                              const float* direction, const float* weight_in,
                              float* weight_out) = 0;
  // For factored moments (common/update/factored_moments.h): the sums of
  // (scale * gradient)^2 over the slice's rows and then over its columns, each
  // square rounded to a multiple of `unit`. sums is host memory and filled on
  // return.
  virtual void FactorSums(const FactoredSlice& slice, float scale, double unit,
                          const float* gradient, double* sums) = 0;
  // The direction AdafactorDirection(row * column / mean) of the slice's
  // elements. rows, one for each of the slice's rows, and columns are host
  // memory that stays unchanged until Synchronize() has returned.
  virtual void FactoredDirection(const FactoredSlice& slice,
                                 const OptimizerStep& step, float mean,
                                 const float* rows, const float* columns,
                                 const float* gradient, float* direction) = 0;
  // out[i] = the sum of squares of x[i grain .. (i + 1) grain), in double, for
  // each of the ceil(n / grain) grains. out is host memory and filled on
  // return. The order of additions depends only on the index within the grain
  // (kernels/grain_math.h), so a norm summed from grains is the same however a
  // tensor is split at grain borders.
  virtual void GrainSquares(int64_t n, int64_t grain, const float* x,
                            double* out) = 0;
};

// The reference implementation. Uses one thread, and pins BLAS to one thread.
std::unique_ptr<Ops> CreateCpuOps();

}  // namespace tributary
