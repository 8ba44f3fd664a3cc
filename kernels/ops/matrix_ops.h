// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

// Products of matrices, operations on rows and columns, and operations on each
// element by itself.
class MatrixOps {
 public:
  virtual ~MatrixOps() = default;

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
};

}  // namespace tributary
