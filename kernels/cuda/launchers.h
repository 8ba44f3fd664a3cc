// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "kernels/device_status.h"
#include "kernels/dropout_math.h"
#include "kernels/ops.h"

namespace tributary {

// The device code of Ops. Each launcher enqueues the work of the Ops method of
// its name on the stream, and returns at once when there is no work.

// ---- bfloat16.cu
// y: the upper halves of x [rows, cols] rounded to bfloat16. A row of y has
// room for `row` elements; those beyond cols are not written.
DeviceStatus LaunchToBfloat16(cudaStream_t stream, int64_t rows, int64_t cols,
                              const float* x, int64_t row, uint16_t* y);
// y = beta y + x, where a row of x has room for `row` elements.
DeviceStatus LaunchAddPadded(cudaStream_t stream, int64_t rows, int64_t cols,
                             const float* x, int64_t row, float beta, float* y);

// ---- elementwise.cu
DeviceStatus LaunchFill(cudaStream_t stream, int64_t n, float value, float* y);
DeviceStatus LaunchAddBias(cudaStream_t stream, int64_t rows, int64_t cols,
                           const float* bias, float* y);
DeviceStatus LaunchAdd(cudaStream_t stream, int64_t rows, int64_t cols,
                       const float* x, const float* b, float* y);
DeviceStatus LaunchToIds(cudaStream_t stream, int64_t n, const float* x,
                         int64_t first, int64_t count, int64_t* ids);
DeviceStatus LaunchActivation(cudaStream_t stream, ActivationKind kind,
                              int64_t n, const float* x, float* y);
DeviceStatus LaunchActivationBackward(cudaStream_t stream, ActivationKind kind,
                                      int64_t n, const float* x, const float* y,
                                      const float* dy, float* dx);
DeviceStatus LaunchDropout(cudaStream_t stream, const DropoutStep& step,
                           const DropoutKey& key, int64_t rows, int64_t cols,
                           const float* x, float* y);

// ---- column_sums.cu. scratch: ColumnSumScratchBytes of device memory, where
// `sums` is 2 for LaunchLayerNormParameters and 1 for LaunchColumnSum.
size_t ColumnSumScratchBytes(int64_t rows, int64_t cols, int sums);
DeviceStatus LaunchColumnSum(cudaStream_t stream, int64_t rows, int64_t cols,
                             const float* x, float beta, float* out,
                             float* scratch);
// The part of LayerNormBackward that computes dgamma and dbeta.
DeviceStatus LaunchLayerNormParameters(cudaStream_t stream, int64_t rows,
                                       int64_t cols, const float* x,
                                       const float* mean, const float* rstd,
                                       const float* dy, float* dgamma,
                                       float* dbeta, float* scratch);

// ---- rows.cu
DeviceStatus LaunchSoftmax(cudaStream_t stream, int64_t rows, int64_t cols,
                           const float* x, float* y);
DeviceStatus LaunchSoftmaxBackward(cudaStream_t stream, int64_t rows,
                                   int64_t cols, const float* y,
                                   const float* dy, float* dx);
DeviceStatus LaunchLayerNorm(cudaStream_t stream, int64_t rows, int64_t cols,
                             float epsilon, const float* x, const float* gamma,
                             const float* beta, float* y, float* mean,
                             float* rstd);
// The part of LayerNormBackward that computes dx.
DeviceStatus LaunchLayerNormRowsBackward(cudaStream_t stream, int64_t rows,
                                         int64_t cols, const float* x,
                                         const float* gamma, const float* mean,
                                         const float* rstd, const float* dy,
                                         float* dx);
DeviceStatus LaunchGroupNorm(cudaStream_t stream, const BatchNormShape& s,
                             int64_t groups, float epsilon, const float* x,
                             const float* gamma, const float* beta, float* y,
                             float* mean, float* rstd);
DeviceStatus LaunchGroupNormBackward(cudaStream_t stream,
                                     const BatchNormShape& s, int64_t groups,
                                     const float* x, const float* gamma,
                                     const float* mean, const float* rstd,
                                     const float* dy, float* dx, float* dgamma,
                                     float* dbeta);

// ---- losses.cu
DeviceStatus LaunchCrossEntropy(cudaStream_t stream, int64_t rows,
                                int64_t classes, const float* logits,
                                const int64_t* labels,
                                const CrossEntropyOptions& options, float scale,
                                float* row_loss, float* row_weight,
                                float* d_logits);
DeviceStatus LaunchCrossEntropyPart(cudaStream_t stream, int64_t rows,
                                    const ClassRange& range,
                                    const float* logits, const int64_t* labels,
                                    const float* class_weights, float* part);
DeviceStatus LaunchCrossEntropyOfParts(
    cudaStream_t stream, int64_t rows, const ClassRange& range,
    const float* logits, const int64_t* labels, int ranks, const float* parts,
    const CrossEntropyOptions& options, float scale, float* row_loss,
    float* d_logits);
DeviceStatus LaunchBceWithLogits(cudaStream_t stream, int64_t n,
                                 const float* logits, const float* targets,
                                 float pos_weight, const float* weights,
                                 float scale, float* loss, float* d_logits);
DeviceStatus LaunchSquaredError(cudaStream_t stream, int64_t n,
                                const float* prediction, const float* targets,
                                float scale, float* loss, float* d_prediction);

// ---- embedding.cu
DeviceStatus LaunchEmbedding(cudaStream_t stream, int64_t count, int64_t dim,
                             const int64_t* ids, const float* table, float* y);
DeviceStatus LaunchEmbeddingBag(cudaStream_t stream, const EmbeddingBags& bags,
                                int64_t dim, const float* table, float* y);
// The part of EmbeddingBagBackward that computes d_weights.
DeviceStatus LaunchBagWeights(cudaStream_t stream, const EmbeddingBags& bags,
                              int64_t dim, const float* table, const float* dy,
                              float* d_weights);
DeviceStatus LaunchDotInteraction(cudaStream_t stream, int64_t batch,
                                  int64_t features, int64_t dim, const float* x,
                                  float* y);
DeviceStatus LaunchDotInteractionBackward(cudaStream_t stream, int64_t batch,
                                          int64_t features, int64_t dim,
                                          const float* x, const float* dy,
                                          float* dx);

// ---- embedding_backward.cu. scratch: EmbeddingBackwardScratchBytes of device
// memory, with `bags` for LaunchEmbeddingBagGradient, which is the part of
// EmbeddingBagBackward that adds to d_table.
size_t EmbeddingBackwardScratchBytes(int64_t count, bool bags);
DeviceStatus LaunchEmbeddingBackward(cudaStream_t stream, int64_t count,
                                     int64_t dim, const int64_t* ids,
                                     const float* dy, float* d_table,
                                     void* scratch);
DeviceStatus LaunchEmbeddingBagGradient(cudaStream_t stream,
                                        const EmbeddingBags& bags, int64_t dim,
                                        const float* dy, float* d_table,
                                        void* scratch);

// ---- update.cu
DeviceStatus LaunchWeightedSum(cudaStream_t stream, int64_t n, int count,
                               const float* const* parts, const float* weights,
                               float* out);
DeviceStatus LaunchOptimizerUpdate(cudaStream_t stream,
                                   const OptimizerStep& step, int64_t n,
                                   const float* gradient,
                                   const float* weight_in, float* weight_out,
                                   float* const* state);
DeviceStatus LaunchApplyDirection(cudaStream_t stream, int64_t n, float rate,
                                  float weight_scale, const float* direction,
                                  const float* weight_in, float* weight_out);
// sums, rows, columns: device memory.
DeviceStatus LaunchFactorSums(cudaStream_t stream, const FactoredSlice& slice,
                              float scale, double unit, const float* gradient,
                              double* sums);
DeviceStatus LaunchFactoredDirection(cudaStream_t stream,
                                     const FactoredSlice& slice,
                                     const OptimizerStep& step, float mean,
                                     const float* rows, const float* columns,
                                     const float* gradient, float* direction);
// out: device memory.
DeviceStatus LaunchGrainSquares(cudaStream_t stream, int64_t n, int64_t grain,
                                const float* x, double* out);

}  // namespace tributary
