// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tributary {

// The machine instructions that the kernels of attention need and C++ cannot
// express. Tensor cores multiply bfloat16 numbers from capability 8.0 on.

// 2^x to within a relative error of 2^-22. Results below 2^-126 become 0.
__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

// Two floats rounded to bfloat16; `low` goes to the lower half.
__device__ inline uint32_t PackBfloat16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Loads four 8 x 8 matrices of 16-bit numbers from shared memory. Lane l gives
// the address of row l % 8 of matrix l / 8. The lane gets two elements of row
// l / 4 of each matrix: element 2 (l % 4) and the next.
__device__ inline void LoadMatrices(const uint16_t* row, uint32_t (&x)[4]) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
      : "r"(address)
      : "memory");
}

// The same, with each matrix transposed.
__device__ inline void LoadTransposed(const uint16_t* row, uint32_t (&x)[4]) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
      : "r"(address)
      : "memory");
}

// c += a b for a: [16, 16] and b: [16, 8]. With g = lane / 4 and t = 2 (lane %
// 4), the lane holds of a: [g, t], [g + 8, t], [g, t + 8] and [g + 8, t + 8],
// each with the element to its right; of b: [t, g] and [t + 8, g], each with
// the element below; and of c: [g, t] and [g + 8, t], each with the element to
// its right.
__device__ inline void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1, float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

}  // namespace tributary
