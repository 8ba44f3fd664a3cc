#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/limits.h"
#include "kernels/batch_norm.h"
#include "kernels/device_status.h"
#include "kernels/optimizer_math.h"
#include "kernels/window.h"

namespace tributary {

enum class ActivationKind {
  kRelu,
  kGeluErf,
  kGeluTanh,
  kSigmoid,
  kTanh,
  kSilu
};

// Identifies the draws of one dropout call. Whether an element is kept is a
// pure function of (seed, step, layer, row, column), so that a replay, another
// number of workers or another device draws the same mask. Local row i is row
// first_row + i * row_stride of the step's global batch. On a rank that has
// only some columns of a row, local column c is column first_column + c / run *
// run_stride + c % run of the whole row; run 0 means that local and whole
// columns are equal.
struct DropoutKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int32_t layer = 0;
  int64_t first_row = 0;
  int64_t row_stride = 1;
  int64_t first_column = 0;
  int64_t run = 0;
  int64_t run_stride = 0;
};

struct CrossEntropyOptions {
  float label_smoothing = 0;
  // Rows with this label have no loss and no gradient.
  int64_t ignore_index = -100;
  const float* class_weights = nullptr;  // [classes] or none
};

// The classes of one rank when logits are split by class: [first, first +
// count) of `total`.
struct ClassRange {
  int64_t first = 0;
  int64_t count = 0;
  int64_t total = 0;
};

// Bag b holds ids[offsets[b]] ... ids[offsets[b + 1] - 1]. An empty bag gives
// zeros.
struct EmbeddingBags {
  int64_t count = 0;
  int64_t num_ids = 0;  // of all bags together
  const int64_t* ids = nullptr;
  const int64_t* offsets = nullptr;  // [count + 1], the first is 0
  const float* weights = nullptr;    // [num_ids] or none
  bool mean = false;                 // else the sum
};

// Element (b, t, h, d) of an operand of attention is at index b * batch + t *
// row + h * head + d.
struct AttentionStrides {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t head = 0;
};

// y[b, t, h] = sum over keys s of softmax(scale q[b, t, h] . k[b, s, h]) times
// v[b, s, h] (Vaswani et al. 2017). Keys past a sample's key length are masked,
// and with `causal` also keys behind the query.
struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t dim = 0;  // of a head, at most kMaxHeadDim
  bool causal = false;
  float scale = 1;
  const int64_t* key_lengths = nullptr;  // [batch], from 1; or none
  AttentionStrides query;                // of q and dq
  AttentionStrides key;                  // of k, v, dk, dv
  AttentionStrides out;                  // of y and dy

  int64_t rows() const { return batch * heads * queries; }
};

// The math of a training step on one device. Pointers refer to memory of this
// device; tensors are float32, row-major and contiguous. A call enqueues work
// and returns; Synchronize waits and reports the first fault since its last
// call. Shapes are not checked here: worker/model checks them when it builds a
// model. Only one thread at a time may use an object, except that the CPU's is
// thread-safe. "Adds to y" means y += the result.
class Ops {
 public:
  virtual ~Ops() = default;

  // "cpu" or "cuda: NVIDIA H200".
  virtual const char* device_name() const = 0;
  virtual bool is_host() const = 0;  // device memory is host memory

  // ---- memory
  // Memory aligned to 64 bytes, or nullptr when there is not enough.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Both return when `host` may be reused; after CopyOut it is filled.
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;
  virtual void Fill(int64_t n, float value, float* y) = 0;
  virtual DeviceStatus Synchronize() = 0;
  // The first fault since the last Synchronize, without waiting. When a CopyOut
  // returns, the faults of all earlier work are known. Results computed or
  // copied out after a fault are invalid and must not be sent.
  virtual DeviceStatus fault() const = 0;

  // ---- linear algebra
  // c = alpha op(a) op(b) + beta c. op(a): [m, k], op(b): [k, n], c: [m, n].
  virtual void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, float alpha, const float* a, const float* b,
                    float beta, float* c) = 0;
  // y[r, :] += bias. y: [rows, cols].
  virtual void AddBias(int64_t rows, int64_t cols, const float* bias,
                       float* y) = 0;
  // out[c] = beta out[c] + the sum of x[r, c] over rows. beta is 0 or 1.
  virtual void ColumnSum(int64_t rows, int64_t cols, const float* x, float beta,
                         float* out) = 0;

  // out[c] = beta out[c] + the sum of x[r, c, :] over rows and pixels. beta is
  // 0 or 1. x: [rows, channels, pixels].
  virtual void ChannelSum(int64_t rows, int64_t channels, int64_t pixels,
                          const float* x, float beta, float* out) = 0;

  // ---- images. scratch: ConvolutionScratch(c, rows) floats, used only during
  // the call.
  virtual int64_t ConvolutionScratch(const Convolution& c, int64_t rows) = 0;
  // bias may be null.
  virtual void Convolve(const Convolution& c, int64_t rows, const float* x,
                        const float* weight, const float* bias, float* y,
                        float* scratch) = 0;
  // Overwrites dx. d_weight and d_bias become beta times their old value plus
  // the gradient; beta is 0 or 1. Each of the three may be null.
  virtual void ConvolveBackward(const Convolution& c, int64_t rows,
                                const float* x, const float* weight,
                                const float* dy, float* dx, float beta,
                                float* d_weight, float* d_bias,
                                float* scratch) = 0;
  // x: [planes, in_pixels]; y and argmax: [planes, out_pixels]. argmax is the
  // index of the maximum in its plane, the first one of equal values. Dilation
  // must be 1.
  virtual void MaxPool(const Window& w, int64_t planes, const float* x,
                       float* y, int32_t* argmax) = 0;
  virtual void MaxPoolBackward(const Window& w, int64_t planes, const float* dy,
                               const int32_t* argmax, float* dx) = 0;
  // Padding counts as zeros, or not at all without count_include_pad.
  virtual void AveragePool(const Window& w, bool count_include_pad,
                           int64_t planes, const float* x, float* y) = 0;
  virtual void AveragePoolBackward(const Window& w, bool count_include_pad,
                                   int64_t planes, const float* dy,
                                   float* dx) = 0;

  // ---- attention. scratch: AttentionScratch(s) floats, used only during the
  // call. No implementation stores the probabilities of all queries and keys at
  // once.
  virtual int64_t AttentionScratch(const AttentionShape& s) = 0;
  // Fills log_sum [batch, heads, queries] with the logarithm of each query's
  // sum of exponentials, which the backward pass needs.
  virtual void Attention(const AttentionShape& s, const float* q,
                         const float* k, const float* v, float* y,
                         float* log_sum, float* scratch) = 0;
  // Overwrites dq, dk and dv.
  virtual void AttentionBackward(const AttentionShape& s, const float* q,
                                 const float* k, const float* v, const float* y,
                                 const float* log_sum, const float* dy,
                                 float* dq, float* dk, float* dv,
                                 float* scratch) = 0;

  // ---- elementwise
  // y[r, :] = x[r, :] + b. x, y: [rows, cols], b: [cols]. y may be x, or b if
  // there is one row.
  virtual void Add(int64_t rows, int64_t cols, const float* x, const float* b,
                   float* y) = 0;
  // y[r, c] = x[r, c]. Consecutive rows are x_stride and y_stride elements
  // apart.
  virtual void CopyMatrix(int64_t rows, int64_t cols, const float* x,
                          int64_t x_stride, float* y, int64_t y_stride) = 0;
  // Converts ids from float32, which holds integers up to 2^24 exactly, to ids
  // relative to `first`. An id outside of [first, first + count) becomes -1.
  virtual void ToIds(int64_t n, const float* x, int64_t first, int64_t count,
                     int64_t* ids) = 0;
  virtual void Activation(ActivationKind kind, int64_t n, const float* x,
                          float* y) = 0;
  // x and y are those of the forward pass; dx may be dy. The derivatives of
  // relu, sigmoid and tanh use only y, so x may be invalid; those of gelu and
  // silu use x.
  virtual void ActivationBackward(ActivationKind kind, int64_t n,
                                  const float* x, const float* y,
                                  const float* dy, float* dx) = 0;
  // y = x / (1 - p) for elements that are kept, else 0. The backward pass is
  // the same call on dy. y may be x.
  virtual void Dropout(int64_t rows, int64_t cols, float p,
                       const DropoutKey& key, const float* x, float* y) = 0;

  // ---- rows
  virtual void Softmax(int64_t rows, int64_t cols, const float* x,
                       float* y) = 0;
  virtual void SoftmaxBackward(int64_t rows, int64_t cols, const float* y,
                               const float* dy, float* dx) = 0;
  // Computes the statistics in two passes over each row. mean, rstd: [rows].
  // Without beta and mean, which are both null: RMSNorm (Zhang, Sennrich 2019),
  // y = x rstd gamma, where rstd is 1 / sqrt(mean of x^2 + epsilon).
  virtual void LayerNorm(int64_t rows, int64_t cols, float epsilon,
                         const float* x, const float* gamma, const float* beta,
                         float* y, float* mean, float* rstd) = 0;
  // Adds to dgamma and dbeta. dx may be dy. mean and dbeta are null for
  // RMSNorm.
  virtual void LayerNormBackward(int64_t rows, int64_t cols, const float* x,
                                 const float* gamma, const float* mean,
                                 const float* rstd, const float* dy, float* dx,
                                 float* dgamma, float* dbeta) = 0;
  // Normalizes each channel over rows and pixels (Ioffe, Szegedy 2015), with
  // statistics in two passes. mean and rstd: [channels], for the backward pass.
  // variance: [channels], unbiased.
  virtual void BatchNorm(const BatchNormShape& s, float epsilon, const float* x,
                         const float* gamma, const float* beta, float* y,
                         float* mean, float* rstd, float* variance) = 0;
  // Normalizes with given statistics, for evaluation.
  virtual void BatchNormWith(const BatchNormShape& s, float epsilon,
                             const float* x, const float* gamma,
                             const float* beta, const float* mean,
                             const float* variance, float* y) = 0;
  // Overwrites dx unless it is null. dgamma and dbeta become `keep` times their
  // old value plus the gradient; keep is 0 or 1.
  virtual void BatchNormBackward(const BatchNormShape& s, const float* x,
                                 const float* gamma, const float* mean,
                                 const float* rstd, const float* dy, float keep,
                                 float* dx, float* dgamma, float* dbeta) = 0;
  // Normalizes each of `groups` equal parts of a sample's channels (Wu, He
  // 2018). mean, rstd: [rows, groups].
  virtual void GroupNorm(const BatchNormShape& s, int64_t groups, float epsilon,
                         const float* x, const float* gamma, const float* beta,
                         float* y, float* mean, float* rstd) = 0;
  // Overwrites dx unless it is null. Adds to dgamma and dbeta.
  virtual void GroupNormBackward(const BatchNormShape& s, int64_t groups,
                                 const float* x, const float* gamma,
                                 const float* mean, const float* rstd,
                                 const float* dy, float* dx, float* dgamma,
                                 float* dbeta) = 0;

  // ---- losses: per-row losses, and gradients multiplied by `scale`. logits:
  // [rows, classes]; row_loss, labels: [rows]. d_logits may be null
  // (evaluation) or equal logits. row_weight, unless null, receives the row's
  // weight: its class weight, or 0 for an ignored row. A label that names no
  // class makes its row NaN.
  virtual void CrossEntropy(int64_t rows, int64_t classes, const float* logits,
                            const int64_t* labels,
                            const CrossEntropyOptions& options, float scale,
                            float* row_loss, float* row_weight,
                            float* d_logits) = 0;
  // Cross entropy of logits that are split by class over several ranks, in two
  // steps. logits: [rows, range.count]; labels number the classes of all ranks.
  // The first step computes this rank's part of each row: part: [rows,
  // kCrossEntropyPart] (loss_math.h).
  virtual void CrossEntropyPart(int64_t rows, const ClassRange& range,
                                const float* logits, const int64_t* labels,
                                float* part) = 0;
  // The second step computes from the parts of all ranks the losses, with the
  // same bits on every rank, and this rank's gradients. parts: [ranks, rows,
  // kCrossEntropyPart].
  virtual void CrossEntropyOfParts(int64_t rows, const ClassRange& range,
                                   const float* logits, const int64_t* labels,
                                   int ranks, const float* parts,
                                   float label_smoothing, float scale,
                                   float* row_loss, float* d_logits) = 0;
  // Both are elementwise. weights may be null.
  virtual void BceWithLogits(int64_t n, const float* logits,
                             const float* targets, float pos_weight,
                             const float* weights, float scale, float* loss,
                             float* d_logits) = 0;
  virtual void SquaredError(int64_t n, const float* prediction,
                            const float* targets, float scale, float* loss,
                            float* d_prediction) = 0;

  // ---- embeddings and interactions. ids must be in [0, rows of the table).
  // y[i, :] = table[ids[i], :], or 0 where the id is -1. y: [count, dim].
  virtual void Embedding(int64_t count, int64_t dim, const int64_t* ids,
                         const float* table, float* y) = 0;
  // Adds dy[i, :] to d_table[ids[i], :] in the order of i. Skips ids of -1.
  virtual void EmbeddingBackward(int64_t count, int64_t dim, const int64_t* ids,
                                 const float* dy, float* d_table) = 0;
  // y[b, :] = the sum or mean of the table rows of bag b. y: [bags, dim].
  virtual void EmbeddingBag(const EmbeddingBags& bags, int64_t dim,
                            const float* table, float* y) = 0;
  // Adds to d_table. Overwrites d_weights [num_ids] unless it is null.
  virtual void EmbeddingBagBackward(const EmbeddingBags& bags, int64_t dim,
                                    const float* table, const float* dy,
                                    float* d_table, float* d_weights) = 0;
  // The dot products of all pairs of a sample's features, in the order (1,0),
  // (2,0), (2,1), ... x: [batch, features, dim], y: [batch, features (features
  // - 1) / 2].
  virtual void DotInteraction(int64_t batch, int64_t features, int64_t dim,
                              const float* x, float* y) = 0;
  virtual void DotInteractionBackward(int64_t batch, int64_t features,
                                      int64_t dim, const float* x,
                                      const float* dy, float* dx) = 0;

  // ---- aggregation and update
  // out = the sum over r, in order, of weights[r] * parts[r]. parts and weights
  // are host arrays of `count` entries. The order of additions is part of the
  // contract, since bit-exact replay depends on it. On the host a part may
  // start at any byte, as received buffers do.
  virtual void WeightedSum(int64_t n, int count, const float* const* parts,
                           const float* weights, float* out) = 0;
  // One optimizer step over n elements: reads gradient, weight_in and state,
  // writes weight_out (may equal weight_in) and state. For every rule except
  // LAMB.
  virtual void OptimizerUpdate(const OptimizerStep& step, int64_t n,
                               const float* gradient, const float* weight_in,
                               float* weight_out, float* const* state) = 0;
  // LAMB in two phases, between which the caller computes the norms of the
  // whole tensor. LambDirection updates the states and writes the direction.
  // ApplyDirection computes weight_out = weight_in - rate * direction; any of
  // the pointers may be equal.
  virtual void LambDirection(const OptimizerStep& step, int64_t n,
                             const float* gradient, const float* weight,
                             float* direction, float* const* state) = 0;
  virtual void ApplyDirection(int64_t n, float rate, const float* direction,
                              const float* weight_in, float* weight_out) = 0;
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
