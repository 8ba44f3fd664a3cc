// SPDX-License-Identifier: Apache-2.0
// The matrix products of CudaOps.
#include <algorithm>

#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/cuda/host/cuda_status.h"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// The elements of a row in memory, so that each row starts at a multiple of 16
// bytes. Tensor cores are several times slower on other rows.
int64_t PaddedRow(int64_t n) { return (n + 7) / 8 * 8; }

// The most floats of c that are computed in padded rows at a time (64 MB, most
// of which stay in the cache of a device), and the fewest that are worth it.
constexpr int64_t kMostPadded = 1 << 24, kFewestPadded = 1 << 18;

// Whether c is computed in padded rows.
bool PadsC(const Product& p) {
  return p.n % 4 != 0 && p.m * p.n >= kFewestPadded;
}

// Clears columns of a matrix of bfloat16 numbers.
DeviceStatus Zero(cudaStream_t stream, uint16_t* x, int64_t rows, int64_t cols,
                  int64_t row) {
  if (rows == 0 || cols == 0) return DeviceStatus();
  const auto width = static_cast<size_t>(cols) * sizeof(uint16_t);
  return CudaStatus(cudaMemset2DAsync(
      x, std::max(width, static_cast<size_t>(row) * sizeof(uint16_t)), 0, width,
      static_cast<size_t>(rows), stream));
}

}  // namespace

void CudaOps::Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                   int64_t k, float alpha, const float* a, const float* b,
                   float beta, float* c) {
  const cudaStream_t stream = Stream();
  const int64_t cols_a = transpose_a ? m : k, cols_b = transpose_b ? k : n;
  const int64_t rows_a = transpose_a ? k : m, rows_b = transpose_b ? n : k;
  Product p{transpose_a, transpose_b, m, n, k, alpha, beta, cols_a, cols_b, n};
  if (!rounds()) return Record(cublas_->Multiply(p, a, b, c));
  p.row_a = PaddedRow(cols_a);
  p.row_b = PaddedRow(cols_b);
  const bool pads = PadsC(p);
  // If c has padded rows, b has as many columns (rows, if transposed).
  const int64_t more_b = pads && transpose_b ? PaddedRow(n) - n : 0;
  const int64_t size_a = rows_a * p.row_a, size_b = rows_b * p.row_b;
  uint16_t* const of_a =
      Operands(static_cast<size_t>(size_a + size_b + more_b * p.row_b + 8) *
               sizeof(uint16_t));
  if (of_a == nullptr) return;
  uint16_t* const of_b = of_a + size_a;
  if (pads) {
    Record(transpose_b ? Zero(stream, of_b + size_b, 1, more_b * p.row_b, 0)
                       : Zero(stream, of_b + n, rows_b, p.row_b - n, p.row_b));
  }
  Record(LaunchToBfloat16(stream, rows_a, cols_a, a, p.row_a, of_a));
  Record(LaunchToBfloat16(stream, rows_b, cols_b, b, p.row_b, of_b));
  MultiplyRounded(p, of_a, of_b, c);
}

// If PadsC, c is computed in padded rows, some rows at a time, which are then
// copied. The product has the padded size, too: cuBLAS has no fast kernel for
// the unpadded size, whatever the distance of the rows.
void CudaOps::MultiplyRounded(const Product& p, const uint16_t* a,
                              const uint16_t* b, float* c) {
  if (!PadsC(p)) {
    return Record(cublas_->Multiply(p, a, b, c));
  }
  Product part = p;
  part.beta = 0;
  part.n = part.row_c = PaddedRow(p.n);
  // cuBLAS computes up to 128 rows at a time.
  const int64_t most = kMostPadded / part.row_c / 128 * 128;
  const int64_t rows = std::min(p.m, std::max<int64_t>(128, most));
  auto* const out = reinterpret_cast<float*>(
      Scratch(static_cast<size_t>(rows * part.row_c) * sizeof(float)));
  if (out == nullptr) return;
  for (int64_t r = 0; r < p.m; r += rows) {
    part.m = std::min(rows, p.m - r);
    const int64_t first = p.transpose_a ? r : r * p.row_a;
    Record(cublas_->Multiply(part, a + first, b, out));
    Record(LaunchAddPadded(stream_, part.m, p.n, out, part.row_c, p.beta,
                           c + r * p.n));
  }
}

}  // namespace tributary
