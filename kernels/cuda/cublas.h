#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device_status.h"

namespace tributary {

// cuBLAS, opened when it is first needed and never linked: its libraries carry
// so much thread-local storage that threads with small stacks can't start
// beside it, and a program must run where it is absent.
class Cublas {
 public:
  // nullptr and the reason when it can't be opened. Work goes to `stream`.
  static std::unique_ptr<Cublas> Open(cudaStream_t stream,
                                      std::string* why_not);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // Its version, as 130100 for 13.1.0.
  int version() const { return version_; }

  // As Ops::Gemm, in true float32.
  DeviceStatus Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                    int64_t k, float alpha, const float* a, const float* b,
                    float beta, float* c);
  // The same of bfloat16 operands, the upper halves of floats, with sums and c
  // in float32.
  DeviceStatus GemmBfloat16(bool transpose_a, bool transpose_b, int64_t m,
                            int64_t n, int64_t k, float alpha,
                            const uint16_t* a, const uint16_t* b, float beta,
                            float* c);

 private:
  // In C++ the header has two of this name.
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
