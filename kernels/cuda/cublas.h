// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device_status.h"

namespace tributary {

// cuBLAS, loaded when it is first needed and never linked. A program must run
// where cuBLAS is absent, and its libraries have so much thread-local storage
// that threads with small stacks can't start once it is loaded with the
// program.
class Cublas {
 public:
  // nullptr with the reason when cuBLAS can't be loaded. Its work goes to
  // `stream`.
  static std::unique_ptr<Cublas> Open(cudaStream_t stream,
                                      std::string* why_not);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // The version, such as 130100 for 13.1.0.
  int version() const { return version_; }

  // As Ops::Gemm, in true float32.
  DeviceStatus Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, float alpha, const float* a, const float* b,
                    float beta, float* c);
  // The same for bfloat16 operands, stored as the upper halves of floats. Sums
  // and c are float32.
  DeviceStatus GemmBfloat16(bool transpose_a, bool transpose_b, int64_t m,
                            int64_t n, int64_t k, float alpha,
                            const uint16_t* a, const uint16_t* b, float beta,
                            float* c);

 private:
  // The type selects one of the header's two C++ overloads.
  using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t,
                                    cublasOperation_t, int, int, int,
                                    const void*, const void*, cudaDataType, int,
                                    const void*, cudaDataType, int, const void*,
                                    void*, cudaDataType, int,
                                    cublasComputeType_t, cublasGemmAlgo_t);

  Cublas() = default;
  bool Load(std::string* why_not);

  decltype(&cublasCreate_v2) create_ = nullptr;
  decltype(&cublasDestroy_v2) destroy_ = nullptr;
  decltype(&cublasSetStream_v2) set_stream_ = nullptr;
  decltype(&cublasSetMathMode) set_math_mode_ = nullptr;
  decltype(&cublasSgemm_v2) sgemm_ = nullptr;
  GemmEx gemm_ex_ = nullptr;
  decltype(&cublasGetStatusString) status_string_ = nullptr;
  decltype(&cublasGetVersion_v2) get_version_ = nullptr;
  int version_ = 0;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace tributary
