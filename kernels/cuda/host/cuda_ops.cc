// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/host/cuda_ops.h"

#include "common/base/check.h"
#include "kernels/cuda/host/cuda_status.h"
#include "kernels/cuda/launchers.h"
#include "kernels/device.h"
#include "kernels/dropout_step.h"

namespace tributary {

DeviceStatus CudaOps::Start(int device) {
  device_ = device;
  cudaDeviceProp properties;
  DeviceStatus status = CudaStatus(cudaSetDevice(device));
  if (status.ok()) {
    status = CudaStatus(cudaGetDeviceProperties(&properties, device));
  }
  if (status.ok()) {
    name_ = std::string("cuda: ") + properties.name;
    status =
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  if (status.ok()) staging_ = Staging::Create(&status);
  return status;
}

std::unique_ptr<CudaOps> CudaOps::Create(int device, ProductPrecision precision,
                                         std::string* why_not) {
  std::unique_ptr<CudaOps> ops(new CudaOps(precision));
  if (DeviceStatus status = ops->Start(device); !status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  ops->cublas_ = Cublas::Open(ops->stream_, why_not);
  if (ops->cublas_ == nullptr) return nullptr;
  return ops;
}

CudaOps::~CudaOps() {
  cudaSetDevice(device_);
  if (scratch_ != nullptr) cudaFreeAsync(scratch_, stream_);
  if (operands_ != nullptr) cudaFreeAsync(operands_, stream_);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  cublas_.reset();
  staging_.reset();
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

cudaStream_t CudaOps::Stream() {
  Record(CudaStatus(cudaSetDevice(device_)));
  return stream_;
}

void CudaOps::Record(const DeviceStatus& status) {
  if (fault_.ok() && !status.ok()) fault_ = status;
}

void* CudaOps::Grow(size_t bytes, void** array, size_t* size) {
  if (bytes <= *size) return *array;
  // Frees in stream order. cudaFree would wait for all work on the device,
  // including an exchange whose other ranks may never come.
  const cudaStream_t stream = Stream();
  if (*array != nullptr) Record(CudaStatus(cudaFreeAsync(*array, stream)));
  *array = nullptr;
  *size = 0;
  if (DeviceStatus status = CudaStatus(cudaMallocAsync(array, bytes, stream));
      !status.ok()) {
    Record(status);
    cudaGetLastError();  // recorded: the next launch must not report it
    *array = nullptr;
    return nullptr;
  }
  *size = bytes;
  return *array;
}

double* CudaOps::Scratch(size_t bytes) {
  return static_cast<double*>(Grow(bytes, &scratch_, &scratch_bytes_));
}

uint16_t* CudaOps::Operands(size_t bytes) {
  return static_cast<uint16_t*>(Grow(bytes, &operands_, &operands_bytes_));
}

void* CudaOps::Allocate(size_t bytes) {
  Stream();
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
  if (error == cudaSuccess) return memory;
  cudaGetLastError();  // clear: the caller handles a lack of memory
  return nullptr;
}

void CudaOps::Free(void* memory) {
  Stream();
  Record(CudaStatus(cudaFree(memory)));
}

void CudaOps::CopyIn(void* device, const void* host, size_t bytes) {
  Record(staging_->CopyIn(Stream(), device, host, bytes));
}

void CudaOps::CopyOut(void* host, const void* device, size_t bytes) {
  Record(staging_->CopyOut(Stream(), host, device, bytes));
}

void CudaOps::Fill(int64_t n, float value, float* y) {
  Record(LaunchFill(Stream(), n, value, y));
}

DeviceStatus CudaOps::Synchronize() {
  Record(CudaStatus(cudaStreamSynchronize(Stream())));
  return std::exchange(fault_, DeviceStatus());
}

void CudaOps::AddBias(int64_t rows, int64_t cols, const float* bias, float* y) {
  Record(LaunchAddBias(Stream(), rows, cols, bias, y));
}

void CudaOps::ColumnSum(int64_t rows, int64_t cols, const float* x, float beta,
                        float* out) {
  if (cols == 0) return;
  const cudaStream_t stream = Stream();
  auto* const scratch =
      reinterpret_cast<float*>(Scratch(ColumnSumScratchBytes(rows, cols, 1)));
  if (scratch == nullptr) return;
  Record(LaunchColumnSum(stream, rows, cols, x, beta, out, scratch));
}

void CudaOps::Add(int64_t rows, int64_t cols, const float* x, const float* b,
                  float* y) {
  Record(LaunchAdd(Stream(), rows, cols, x, b, y));
}

void CudaOps::CopyMatrix(int64_t rows, int64_t cols, const float* x,
                         int64_t x_stride, float* y, int64_t y_stride) {
  if (rows == 0 || cols == 0) return;
  Record(CudaStatus(cudaMemcpy2DAsync(
      y, y_stride * sizeof(float), x, x_stride * sizeof(float),
      cols * sizeof(float), rows, cudaMemcpyDeviceToDevice, Stream())));
}

void CudaOps::ToIds(int64_t n, const float* x, int64_t first, int64_t count,
                    int64_t* ids) {
  Record(LaunchToIds(Stream(), n, x, first, count, ids));
}

void CudaOps::Activation(ActivationKind kind, int64_t n, const float* x,
                         float* y) {
  Record(LaunchActivation(Stream(), kind, n, x, y));
}

void CudaOps::ActivationBackward(ActivationKind kind, int64_t n, const float* x,
                                 const float* y, const float* dy, float* dx) {
  Record(LaunchActivationBackward(Stream(), kind, n, x, y, dy, dx));
}

void CudaOps::Dropout(int64_t rows, int64_t cols, float p,
                      const DropoutKey& key, const float* x, float* y) {
  Record(
      LaunchDropout(Stream(), PrepareDropout(p, key), key, rows, cols, x, y));
}

void CudaOps::Softmax(int64_t rows, int64_t cols, const float* x, float* y) {
  Record(LaunchSoftmax(Stream(), rows, cols, x, y));
}

void CudaOps::SoftmaxBackward(int64_t rows, int64_t cols, const float* y,
                              const float* dy, float* dx) {
  Record(LaunchSoftmaxBackward(Stream(), rows, cols, y, dy, dx));
}

void CudaOps::LayerNorm(int64_t rows, int64_t cols, float epsilon,
                        const float* x, const float* gamma, const float* beta,
                        float* y, float* mean, float* rstd) {
  Record(LaunchLayerNorm(Stream(), rows, cols, epsilon, x, gamma, beta, y, mean,
                         rstd));
}

void CudaOps::LayerNormBackward(int64_t rows, int64_t cols, const float* x,
                                const float* gamma, const float* mean,
                                const float* rstd, const float* dy, float* dx,
                                float* dgamma, float* dbeta) {
  if (rows * cols == 0) return;
  const cudaStream_t stream = Stream();
  auto* const scratch =
      reinterpret_cast<float*>(Scratch(ColumnSumScratchBytes(rows, cols, 2)));
  if (scratch == nullptr) return;
  // First the parameters' gradients, which read dy: dx may overwrite dy.
  Record(LaunchLayerNormParameters(stream, rows, cols, x, mean, rstd, dy,
                                   dgamma, dbeta, scratch));
  Record(LaunchLayerNormRowsBackward(stream, rows, cols, x, gamma, mean, rstd,
                                     dy, dx));
}

void CudaOps::GroupNorm(const BatchNormShape& s, int64_t groups, float epsilon,
                        const float* x, const float* gamma, const float* beta,
                        float* y, float* mean, float* rstd) {
  Record(LaunchGroupNorm(Stream(), s, groups, epsilon, x, gamma, beta, y, mean,
                         rstd));
}

void CudaOps::GroupNormBackward(const BatchNormShape& s, int64_t groups,
                                const float* x, const float* gamma,
                                const float* mean, const float* rstd,
                                const float* dy, float* dx, float* dgamma,
                                float* dbeta) {
  Record(LaunchGroupNormBackward(Stream(), s, groups, x, gamma, mean, rstd, dy,
                                 dx, dgamma, dbeta));
}

void CudaOps::CrossEntropy(int64_t rows, int64_t classes, const float* logits,
                           const int64_t* labels,
                           const CrossEntropyOptions& options, float scale,
                           float* row_loss, float* row_weight,
                           float* d_logits) {
  Record(LaunchCrossEntropy(Stream(), rows, classes, logits, labels, options,
                            scale, row_loss, row_weight, d_logits));
}

void CudaOps::CrossEntropyPart(int64_t rows, const ClassRange& range,
                               const float* logits, const int64_t* labels,
                               const float* class_weights, float* part) {
  Record(LaunchCrossEntropyPart(Stream(), rows, range, logits, labels,
                                class_weights, part));
}

void CudaOps::CrossEntropyOfParts(int64_t rows, const ClassRange& range,
                                  const float* logits, const int64_t* labels,
                                  int ranks, const float* parts,
                                  const CrossEntropyOptions& options,
                                  float scale, float* row_loss,
                                  float* d_logits) {
  Record(LaunchCrossEntropyOfParts(Stream(), rows, range, logits, labels, ranks,
                                   parts, options, scale, row_loss, d_logits));
}

void CudaOps::BceWithLogits(int64_t n, const float* logits,
                            const float* targets, float pos_weight,
                            const float* weights, float scale, float* loss,
                            float* d_logits) {
  Record(LaunchBceWithLogits(Stream(), n, logits, targets, pos_weight, weights,
                             scale, loss, d_logits));
}

void CudaOps::SquaredError(int64_t n, const float* prediction,
                           const float* targets, float scale, float* loss,
                           float* d_prediction) {
  Record(LaunchSquaredError(Stream(), n, prediction, targets, scale, loss,
                            d_prediction));
}

void CudaOps::Embedding(int64_t count, int64_t dim, const int64_t* ids,
                        const float* table, float* y) {
  Record(LaunchEmbedding(Stream(), count, dim, ids, table, y));
}

void CudaOps::EmbeddingBackward(int64_t count, int64_t dim, const int64_t* ids,
                                const float* dy, float* d_table) {
  if (count == 0) return;
  const cudaStream_t stream = Stream();
  void* scratch = Scratch(EmbeddingBackwardScratchBytes(count, false));
  if (scratch == nullptr) return;
  Record(
      LaunchEmbeddingBackward(stream, count, dim, ids, dy, d_table, scratch));
}

void CudaOps::EmbeddingBag(const EmbeddingBags& bags, int64_t dim,
                           const float* table, float* y) {
  Record(LaunchEmbeddingBag(Stream(), bags, dim, table, y));
}

void CudaOps::EmbeddingBagBackward(const EmbeddingBags& bags, int64_t dim,
                                   const float* table, const float* dy,
                                   float* d_table, float* d_weights) {
  if (bags.num_ids == 0) return;
  const cudaStream_t stream = Stream();
  if (d_weights != nullptr) {
    Record(LaunchBagWeights(stream, bags, dim, table, dy, d_weights));
  }
  void* scratch = Scratch(EmbeddingBackwardScratchBytes(bags.num_ids, true));
  if (scratch == nullptr) return;
  Record(LaunchEmbeddingBagGradient(stream, bags, dim, dy, d_table, scratch));
}

void CudaOps::DotInteraction(int64_t batch, int64_t features, int64_t dim,
                             const float* x, float* y) {
  Record(LaunchDotInteraction(Stream(), batch, features, dim, x, y));
}

void CudaOps::DotInteractionBackward(int64_t batch, int64_t features,
                                     int64_t dim, const float* x,
                                     const float* dy, float* dx) {
  Record(
      LaunchDotInteractionBackward(Stream(), batch, features, dim, x, dy, dx));
}

void CudaOps::WeightedSum(int64_t n, int count, const float* const* parts,
                          const float* weights, float* out) {
  TRIBUTARY_CHECK(count >= 1);
  Record(LaunchWeightedSum(Stream(), n, count, parts, weights, out));
}

void CudaOps::OptimizerUpdate(const OptimizerStep& step, int64_t n,
                              const float* gradient, const float* weight_in,
                              float* weight_out, float* const* state) {
  TRIBUTARY_CHECK(!step.makes_direction);
  Record(LaunchOptimizerUpdate(Stream(), step, n, gradient, weight_in,
                               weight_out, state));
}

void CudaOps::OptimizerDirection(const OptimizerStep& step, int64_t n,
                                 const float* gradient, const float* weight,
                                 float* direction, float* const* state) {
  TRIBUTARY_CHECK(step.makes_direction);
  Record(LaunchOptimizerUpdate(Stream(), step, n, gradient, weight, direction,
                               state));
}

void CudaOps::ApplyDirection(int64_t n, float rate, float weight_scale,
                             const float* direction, const float* weight_in,
                             float* weight_out) {
  Record(LaunchApplyDirection(Stream(), n, rate, weight_scale, direction,
                              weight_in, weight_out));
}

void CudaOps::FactorSums(const FactoredSlice& slice, float scale, double unit,
                         const float* gradient, double* sums) {
  const size_t bytes =
      static_cast<size_t>(slice.rows() + slice.columns) * sizeof(double);
  const cudaStream_t stream = Stream();
  double* const scratch = Scratch(bytes);
  if (scratch == nullptr) return;
  Record(LaunchFactorSums(stream, slice, scale, unit, gradient, scratch));
  CopyOut(sums, scratch, bytes);
}

void CudaOps::FactoredDirection(const FactoredSlice& slice,
                                const OptimizerStep& step, float mean,
                                const float* rows, const float* columns,
                                const float* gradient, float* direction) {
  const auto num_rows = static_cast<size_t>(slice.rows());
  const auto num_columns = static_cast<size_t>(slice.columns);
  const cudaStream_t stream = Stream();
  auto* const scratch = reinterpret_cast<float*>(
      Scratch((num_rows + num_columns) * sizeof(float)));
  if (scratch == nullptr) return;
  CopyIn(scratch, rows, num_rows * sizeof(float));
  CopyIn(scratch + num_rows, columns, num_columns * sizeof(float));
  Record(LaunchFactoredDirection(stream, slice, step, mean, scratch,
                                 scratch + num_rows, gradient, direction));
}

void CudaOps::GrainSquares(int64_t n, int64_t grain, const float* x,
                           double* out) {
  if (n == 0) return;
  const size_t bytes =
      static_cast<size_t>((n + grain - 1) / grain) * sizeof(double);
  const cudaStream_t stream = Stream();
  double* squares = Scratch(bytes);
  if (squares == nullptr) return;
  Record(LaunchGrainSquares(stream, n, grain, x, squares));
  CopyOut(out, squares, bytes);
}

std::unique_ptr<Ops> CreateCudaOps(std::string* why_not, int64_t index,
                                   ProductPrecision precision) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    *why_not = "no CUDA driver, or one too old for this build";
    return nullptr;
  }
  if (error != cudaSuccess && error != cudaErrorNoDevice) {
    *why_not = CudaStatus(error).message();
    return nullptr;
  }
  if (error == cudaErrorNoDevice || count == 0) {
    *why_not = "no CUDA device";
    return nullptr;
  }
  TRIBUTARY_CHECK(index >= 0);
  return CudaOps::Create(static_cast<int>(index % count), precision, why_not);
}

}  // namespace tributary
