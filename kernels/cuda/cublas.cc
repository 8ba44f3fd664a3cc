// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublas.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

namespace tributary {
namespace {

// By name, then in the CUDA toolkit of the build. Both versions have the calls
// used here.
constexpr const char* kLibraries[] = {
    "libcublas.so.13",
    "libcublas.so.12",
    TRIBUTARY_CUDA_LIBRARY_DIR "/libcublas.so",
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool Cublas::Load(std::string* why_not) {
  void* library = nullptr;
  for (const char* name : kLibraries) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    *why_not = "cuBLAS cannot be opened (libcublas.so.13 or .12 wanted)";
    return false;
  }
  // The library stays open: unloading CUDA libraries is not supported.
  if (!Find(library, "cublasCreate_v2", &create_) ||
      !Find(library, "cublasDestroy_v2", &destroy_) ||
      !Find(library, "cublasSetStream_v2", &set_stream_) ||
      !Find(library, "cublasSetMathMode", &set_math_mode_) ||
      !Find(library, "cublasSgemm_v2", &sgemm_) ||
      !Find(library, "cublasGemmEx", &gemm_ex_) ||
      !Find(library, "cublasGetStatusString", &status_string_) ||
      !Find(library, "cublasGetVersion_v2", &get_version_)) {
    *why_not = std::string("cuBLAS lacks a function: ") + dlerror();
    return false;
  }
  return true;
}

std::unique_ptr<Cublas> Cublas::Open(cudaStream_t stream,
                                     std::string* why_not) {
  std::unique_ptr<Cublas> cublas(new Cublas);
  if (!cublas->Load(why_not)) return nullptr;
  cublasStatus_t status = cublas->create_(&cublas->handle_);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublas->set_stream_(cublas->handle_, stream);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublas->get_version_(cublas->handle_, &cublas->version_);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    // The default mode multiplies in float32; TF32 must be requested.
    status = cublas->set_math_mode_(cublas->handle_, CUBLAS_DEFAULT_MATH);
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    *why_not =
        std::string("cuBLAS cannot start: ") + cublas->status_string_(status);
    return nullptr;
  }
  return cublas;
}

Cublas::~Cublas() {
  if (handle_ != nullptr) destroy_(handle_);
}

namespace {

DeviceStatus CheckExtents(int64_t m, int64_t n, int64_t k) {
  if (std::max({m, n, k}) <= std::numeric_limits<int>::max()) {
    return DeviceStatus();
  }
  return DeviceStatus::Error("matrix product: an extent exceeds 2^31 - 1");
}

}  // namespace

DeviceStatus Cublas::Gemm(bool transpose_a, bool transpose_b, int64_t m,
                          int64_t n, int64_t k, float alpha, const float* a,
                          const float* b, float beta, float* c) {
  if (m == 0 || n == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(m, n, k); !status.ok()) return status;
  // cuBLAS is column-major: the row-major c = a b is its c' = b' a'.
  const int64_t row_a = std::max<int64_t>(1, transpose_a ? m : k);
  const int64_t row_b = std::max<int64_t>(1, transpose_b ? k : n);
  const cublasStatus_t status =
      sgemm_(handle_, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
             transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, static_cast<int>(n),
             static_cast<int>(m), static_cast<int>(k), &alpha, b,
             static_cast<int>(row_b), a, static_cast<int>(row_a), &beta, c,
             static_cast<int>(n));
  if (status == CUBLAS_STATUS_SUCCESS) return DeviceStatus();
  return DeviceStatus::Error(std::string("cuBLAS sgemm: ") +
                             status_string_(status));
}

DeviceStatus Cublas::GemmBfloat16(bool transpose_a, bool transpose_b, int64_t m,
                                  int64_t n, int64_t k, float alpha,
                                  const uint16_t* a, const uint16_t* b,
                                  float beta, float* c) {
  if (m == 0 || n == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(m, n, k); !status.ok()) return status;
  const int64_t row_a = std::max<int64_t>(1, transpose_a ? m : k);
  const int64_t row_b = std::max<int64_t>(1, transpose_b ? k : n);
  const cublasStatus_t status =
      gemm_ex_(handle_, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
               transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, static_cast<int>(n),
               static_cast<int>(m), static_cast<int>(k), &alpha, b, CUDA_R_16BF,
               static_cast<int>(row_b), a, CUDA_R_16BF, static_cast<int>(row_a),
               &beta, c, CUDA_R_32F, static_cast<int>(n), CUBLAS_COMPUTE_32F,
               CUBLAS_GEMM_DEFAULT);
  if (status == CUBLAS_STATUS_SUCCESS) return DeviceStatus();
  return DeviceStatus::Error(std::string("cuBLAS GemmEx: ") +
                             status_string_(status));
}

}  // namespace tributary
