// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/activation_math.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"
#include "kernels/dropout_step.h"

namespace tributary {
namespace {

template <float (*kFunction)(float)>
TRIBUTARY_INLINE void Map(int64_t n, const float* x, float* y) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] = kFunction(x[i]);
}

template <float (*kFunction)(float, float, float)>
TRIBUTARY_INLINE void MapBackward(int64_t n, const float* x, const float* y,
                                  const float* dy, float* dx) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) dx[i] = kFunction(x[i], y[i], dy[i]);
}

TRIBUTARY_CLONES void Activate(ActivationKind kind, int64_t n, const float* x,
                               float* y) {
  switch (kind) {
    case ActivationKind::kRelu:
      return Map<Relu>(n, x, y);
    case ActivationKind::kGeluErf:
      return Map<GeluErf>(n, x, y);
    case ActivationKind::kGeluTanh:
      return Map<GeluTanh>(n, x, y);
    case ActivationKind::kSigmoid:
      return Map<Sigmoid>(n, x, y);
    case ActivationKind::kTanh:
      return Map<Tanh>(n, x, y);
    case ActivationKind::kSilu:
      return Map<Silu>(n, x, y);
  }
}

TRIBUTARY_CLONES void ActivateBackward(ActivationKind kind, int64_t n,
                                       const float* x, const float* y,
                                       const float* dy, float* dx) {
  switch (kind) {
    case ActivationKind::kRelu:
      return MapBackward<ReluBackward>(n, x, y, dy, dx);
    case ActivationKind::kGeluErf:
      return MapBackward<GeluErfBackward>(n, x, y, dy, dx);
    case ActivationKind::kGeluTanh:
      return MapBackward<GeluTanhBackward>(n, x, y, dy, dx);
    case ActivationKind::kSigmoid:
      return MapBackward<SigmoidBackward>(n, x, y, dy, dx);
    case ActivationKind::kTanh:
      return MapBackward<TanhBackward>(n, x, y, dy, dx);
    case ActivationKind::kSilu:
      return MapBackward<SiluBackward>(n, x, y, dy, dx);
  }
}

TRIBUTARY_CLONES void AddRow(int64_t cols, const float* x, float* y) {
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) y[c] += x[c];
}

TRIBUTARY_CLONES void AddRows(int64_t cols, const float* x, const float* b,
                              float* y) {
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) y[c] = x[c] + b[c];
}

TRIBUTARY_CLONES void Truncate(int64_t n, const float* x, int64_t first,
                               int64_t count, int64_t* ids) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = static_cast<int64_t>(x[i]) - first;
    ids[i] = id >= 0 && id < count ? id : -1;
  }
}

// out += four rows of x. Adding pairs of rows first halves the memory traffic
// on `out` and keeps rounding errors small.
TRIBUTARY_CLONES void AddFourRows(int64_t cols, const float* x, float* out) {
  const float* x1 = x + cols;
  const float* x2 = x1 + cols;
  const float* x3 = x2 + cols;
  TRIBUTARY_IVDEP
  for (int64_t c = 0; c < cols; ++c) {
    out[c] += (x[c] + x1[c]) + (x2[c] + x3[c]);
  }
}

// Drops out `groups` groups of four columns of a row, starting at group
// `first`.
TRIBUTARY_CLONES void DropoutRow(DropoutStep step, int64_t row, int64_t first,
                                 int64_t groups, const float* x, float* y) {
  TRIBUTARY_IVDEP
  for (int64_t group = 0; group < groups; ++group) {
    const Philox4 draws = DropoutDraws(step, row, first + group);
    const int64_t c = 4 * group;
    y[c] = DropoutElement(step, draws.word[0], x[c]);
    y[c + 1] = DropoutElement(step, draws.word[1], x[c + 1]);
    y[c + 2] = DropoutElement(step, draws.word[2], x[c + 2]);
    y[c + 3] = DropoutElement(step, draws.word[3], x[c + 3]);
  }
}

// Drops out one run of columns, which may start within a group of four. The
// whole groups in its middle use the vectorized loop.
void DropoutRun(const DropoutStep& step, int64_t row, int64_t first,
                int64_t cols, const float* x, float* y) {
  int64_t c = 0;
  const auto one_by_one = [&](int64_t end) {
    for (; c < end; ++c) {
      const Philox4 draws = DropoutDraws(step, row, (first + c) / 4);
      y[c] = DropoutElement(step, draws.word[(first + c) % 4], x[c]);
    }
  };
  one_by_one(std::min(cols, (4 - first % 4) % 4));
  const int64_t groups = (cols - c) / 4;
  DropoutRow(step, row, (first + c) / 4, groups, x + c, y + c);
  c += 4 * groups;
  one_by_one(cols);
}

}  // namespace

void CpuOps::AddBias(int64_t rows, int64_t cols, const float* bias, float* y) {
  for (int64_t r = 0; r < rows; ++r) AddRow(cols, bias, y + r * cols);
}

void CpuOps::ColumnSum(int64_t rows, int64_t cols, const float* x, float beta,
                       float* out) {
  if (beta == 0) std::fill_n(out, cols, 0.0f);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) AddFourRows(cols, x + r * cols, out);
  for (; r < rows; ++r) AddRow(cols, x + r * cols, out);
}

void CpuOps::Add(int64_t rows, int64_t cols, const float* x, const float* b,
                 float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    AddRows(cols, x + r * cols, b, y + r * cols);
  }
}

void CpuOps::CopyMatrix(int64_t rows, int64_t cols, const float* x,
                        int64_t x_stride, float* y, int64_t y_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * x_stride, cols, y + r * y_stride);
  }
}

void CpuOps::ToIds(int64_t n, const float* x, int64_t first, int64_t count,
                   int64_t* ids) {
  Truncate(n, x, first, count, ids);
}

void CpuOps::Activation(ActivationKind kind, int64_t n, const float* x,
                        float* y) {
  Activate(kind, n, x, y);
}

void CpuOps::ActivationBackward(ActivationKind kind, int64_t n, const float* x,
                                const float* y, const float* dy, float* dx) {
  ActivateBackward(kind, n, x, y, dy, dx);
}

void CpuOps::Dropout(int64_t rows, int64_t cols, float p, const DropoutKey& key,
                     const float* x, float* y) {
  const DropoutStep step = PrepareDropout(p, key);
  const int64_t run = key.run > 0 ? key.run : std::max<int64_t>(cols, 1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = key.first_row + r * key.row_stride;
    for (int64_t c = 0; c < cols; c += run) {
      DropoutRun(step, row, key.first_column + c / run * key.run_stride,
                 std::min(run, cols - c), x + r * cols + c, y + r * cols + c);
    }
  }
}

}  // namespace tributary
