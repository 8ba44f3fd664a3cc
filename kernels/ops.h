#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/device_status.h"
#include "kernels/optimizer_math.h"

namespace tributary {

enum class ActivationKind { kRelu, kGeluErf, kGeluTanh, kSigmoid, kTanh, kSilu };

// Names one dropout decision: a pure function of (seed, step, layer, row,
// column), so that a replay, another number of workers or another device draws
// the same mask. Local row i is row first_row + i * row_stride of the step's
// global batch.
struct DropoutKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int32_t layer = 0;
  int64_t first_row = 0;
  int64_t row_stride = 1;
};

struct CrossEntropyOptions {
  float label_smoothing = 0;
  int64_t ignore_index = -100;          // rows with this label count nothing
  const float* class_weights = nullptr;  // [classes] or none
};

// The math of a training step on one device. Pointers are to memory of this
// device; tensors are float32, row-major and contiguous. A call enqueues work
// and returns; Synchronize waits and tells the first fault since the last call.
// Shapes are the caller's duty (worker/model checks them when it is built).
// "Adds" means that the result is added to what stands there.
class Ops {
 public:
  virtual ~Ops() = default;

  // "cpu" or "cuda: NVIDIA H200".
  virtual const char* device_name() const = 0;
  virtual bool is_host() const = 0;  // device memory is host memory

  // ---- memory
  virtual void* Allocate(size_t bytes) = 0;  // 64-byte aligned; aborts never:
                                             // nullptr when there is none
  virtual void Free(void* memory) = 0;
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;
  virtual void Fill(int64_t n, float value, float* y) = 0;
  virtual DeviceStatus Synchronize() = 0;

  // ---- linear algebra
  // c = alpha op(a) op(b) + beta c. op(a): [m, k], op(b): [k, n], c: [m, n].
  virtual void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, float alpha, const float* a, const float* b,
                    float beta, float* c) = 0;
  // y[r, :] += bias. y: [rows, cols].
  virtual void AddBias(int64_t rows, int64_t cols, const float* bias,
                       float* y) = 0;
  // out[c] = beta out[c] + sum over rows of x[r, c], beta 0 or 1.
  virtual void ColumnSum(int64_t rows, int64_t cols, const float* x, float beta,
                         float* out) = 0;

  // ---- elementwise
  virtual void Activation(ActivationKind kind, int64_t n, const float* x,
                          float* y) = 0;
  // x and y are the forward pass's; dx may be dy.
  virtual void ActivationBackward(ActivationKind kind, int64_t n,
                                  const float* x, const float* y,
                                  const float* dy, float* dx) = 0;
  // y = x / (1 - p) where the key's draw keeps, else 0. Backward is the same
  // call on dy. y may be x.
  virtual void Dropout(int64_t rows, int64_t cols, float p,
                       const DropoutKey& key, const float* x, float* y) = 0;

  // ---- rows
  virtual void Softmax(int64_t rows, int64_t cols, const float* x,
                       float* y) = 0;
  virtual void SoftmaxBackward(int64_t rows, int64_t cols, const float* y,
                               const float* dy, float* dx) = 0;
  // Statistics in two passes over each row; mean, rstd: [rows].
  virtual void LayerNorm(int64_t rows, int64_t cols, float epsilon,
                         const float* x, const float* gamma, const float* beta,
                         float* y, float* mean, float* rstd) = 0;
  // Adds to dgamma and dbeta.
  virtual void LayerNormBackward(int64_t rows, int64_t cols, const float* x,
                                 const float* gamma, const float* mean,
                                 const float* rstd, const float* dy, float* dx,
                                 float* dgamma, float* dbeta) = 0;

  // ---- losses: per-row losses, and gradients already times `scale`.
  // logits: [rows, classes]; row_loss, labels: [rows]. d_logits may be null
  // (evaluation) and may be logits. The weight of a row (class weight, 0 for
  // ignored) goes to row_weight when that is not null.
  virtual void CrossEntropy(int64_t rows, int64_t classes, const float* logits,
                            const int64_t* labels,
                            const CrossEntropyOptions& options, float scale,
                            float* row_loss, float* row_weight,
                            float* d_logits) = 0;
  // Elementwise; weights may be null.
  virtual void BceWithLogits(int64_t n, const float* logits,
                             const float* targets, float pos_weight,
                             const float* weights, float scale, float* loss,
                             float* d_logits) = 0;
  virtual void SquaredError(int64_t n, const float* prediction,
                            const float* targets, float scale, float* loss,
                            float* d_prediction) = 0;

  // ---- aggregation and update
  // out = sum over r, in order, of weights[r] * parts[r]; parts, weights are
  // host arrays of `count` entries. The order of additions is part of the
  // contract: bit-exact replay rests on it.
  virtual void WeightedSum(int64_t n, int count, const float* const* parts,
                           const float* weights, float* out) = 0;
  // One optimizer step over n elements: reads gradient, weight_in and state,
  // writes weight_out (may be weight_in) and state.
  virtual void OptimizerUpdate(const OptimizerStep& step, int64_t n,
                               const float* gradient, const float* weight_in,
                               float* weight_out, float* const* state) = 0;
};

// The reference. One thread; BLAS is pinned to one thread too.
std::unique_ptr<Ops> CreateCpuOps();

}  // namespace tributary
