// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device_status.h"

namespace tributary {

// Row-major matrix products c = alpha a b + beta c, one or a batch of them. a
// is [m, k], or [k, m] if transposed; b is [k, n], or [n, k]; c is [m, n].
struct Product {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1, beta = 0;
  // The distance from one row to the next, in elements.
  int64_t row_a = 0, row_b = 0, row_c = 0;
  // The number of products, and the distance from one matrix to the next.
  int64_t count = 1;
  int64_t step_a = 0, step_b = 0, step_c = 0;
};

// cuBLAS, loaded when it is first needed and never linked. A program must run
// where cuBLAS is absent. Its libraries also have so much thread-local storage
// that threads with small stacks can't start if they are loaded with the
// program.
class Cublas {
 public:
  // Returns nullptr with the reason when cuBLAS can't be loaded. The products
  // are enqueued on `stream`.
  static std::unique_ptr<Cublas> Open(cudaStream_t stream,
                                      std::string* why_not);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // The version, such as 130100 for 13.1.0.
  int version() const { return version_; }

  // Multiplies in true float32.
  DeviceStatus Multiply(const Product& p, const float* a, const float* b,
                        float* c);
  // The same for bfloat16 operands, stored as the upper halves of floats. Sums
  // and c are float32.
  DeviceStatus Multiply(const Product& p, const uint16_t* a, const uint16_t* b,
                        float* c);

 private:
  // The types select one of the header's two C++ overloads.
  using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t,
                                    cublasOperation_t, int, int, int,
                                    const void*, const void*, cudaDataType, int,
                                    const void*, cudaDataType, int, const void*,
                                    void*, cudaDataType, int,
                                    cublasComputeType_t, cublasGemmAlgo_t);
  using GemmBatchedEx = cublasStatus_t (*)(
      cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
      const void*, const void*, cudaDataType, int, long long int, const void*,
      cudaDataType, int, long long int, const void*, void*, cudaDataType, int,
      long long int, int, cublasComputeType_t, cublasGemmAlgo_t);

  Cublas() = default;
  bool Load(std::string* why_not);
  DeviceStatus Result(const char* call, cublasStatus_t status) const;
  // kType: the operands' type, which is Element.
  template <cudaDataType kType, typename Element>
  DeviceStatus MultiplyOf(const Product& p, const Element* a, const Element* b,
                          float* c);

  decltype(&cublasCreate_v2) create_ = nullptr;
  decltype(&cublasDestroy_v2) destroy_ = nullptr;
  decltype(&cublasSetStream_v2) set_stream_ = nullptr;
  decltype(&cublasSetMathMode) set_math_mode_ = nullptr;
  GemmEx gemm_ex_ = nullptr;
  GemmBatchedEx gemm_batched_ex_ = nullptr;
  decltype(&cublasGetStatusString) status_string_ = nullptr;
  decltype(&cublasGetVersion_v2) get_version_ = nullptr;
  int version_ = 0;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace tributary
