// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/host/cublas.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>

namespace tributary {
namespace {

// The libraries are tried in this order: by name, then in the CUDA toolkit of
// the build. Both versions have the calls used here.
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
      !Find(library, "cublasGemmEx", &gemm_ex_) ||
      !Find(library, "cublasGemmStridedBatchedEx", &gemm_batched_ex_) ||
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

DeviceStatus CheckExtents(const Product& p) {
  if (std::max({p.m, p.n, p.k, p.row_a, p.row_b, p.row_c, p.count}) <=
      std::numeric_limits<int>::max()) {
    return DeviceStatus();
  }
  return DeviceStatus::Error("matrix product: an extent exceeds 2^31 - 1");
}

cublasOperation_t Operation(bool transpose) {
  return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// cuBLAS requires a row length of at least 1, even for an empty matrix.
int RowOf(int64_t row) { return static_cast<int>(std::max<int64_t>(1, row)); }

}  // namespace

DeviceStatus Cublas::Result(const char* call, cublasStatus_t status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return DeviceStatus();
  return DeviceStatus::Error(std::string("cuBLAS ") + call + ": " +
                             status_string_(status));
}

// cuBLAS is column-major: the row-major c = a b is its c' = b' a'.
template <cudaDataType kType, typename Element>
DeviceStatus Cublas::MultiplyOf(const Product& p, const Element* a,
                                const Element* b, float* c) {
  if (p.m == 0 || p.n == 0 || p.count == 0) return DeviceStatus();
  if (DeviceStatus status = CheckExtents(p); !status.ok()) return status;
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n);
  const int k = static_cast<int>(p.k);
  const cublasOperation_t op_a = Operation(p.transpose_a);
  const cublasOperation_t op_b = Operation(p.transpose_b);
  const int row_a = RowOf(p.row_a), row_b = RowOf(p.row_b);
  const int row_c = RowOf(p.row_c);
  if (p.count == 1) {
    return Result("GemmEx",
                  gemm_ex_(handle_, op_b, op_a, n, m, k, &p.alpha, b, kType,
                           row_b, a, kType, row_a, &p.beta, c, CUDA_R_32F,
                           row_c, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
  return Result(
      "batched GemmEx",
      gemm_batched_ex_(handle_, op_b, op_a, n, m, k, &p.alpha, b, kType, row_b,
                       p.step_b, a, kType, row_a, p.step_a, &p.beta, c,
                       CUDA_R_32F, row_c, p.step_c, static_cast<int>(p.count),
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

DeviceStatus Cublas::Multiply(const Product& p, const float* a, const float* b,
                              float* c) {
  return MultiplyOf<CUDA_R_32F>(p, a, b, c);
}

DeviceStatus Cublas::Multiply(const Product& p, const uint16_t* a,
                              const uint16_t* b, float* c) {
  return MultiplyOf<CUDA_R_16BF>(p, a, b, c);
}

}  // namespace tributary
