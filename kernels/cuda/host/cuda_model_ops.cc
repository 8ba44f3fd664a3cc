// SPDX-License-Identifier: Apache-2.0
// The methods of CudaOps for images and attention.
#include "kernels/cuda/host/cuda_convolution.h"
#include "kernels/cuda/host/cuda_ops.h"
#include "kernels/cuda/model_launchers.h"

namespace tributary {

int64_t CudaOps::ConvolutionScratch(const Convolution& c, int64_t rows) {
  return CudaConvolution(*this, c, rows).scratch_size();
}

void CudaOps::Convolve(const Convolution& c, int64_t rows, const float* x,
                       const float* weight, const float* bias, float* y,
                       float* scratch) {
  CudaConvolution(*this, c, rows).Forward(x, weight, bias, y, scratch);
}

void CudaOps::ConvolveBackward(const Convolution& c, int64_t rows,
                               const float* x, const float* weight,
                               const float* dy, float* dx, float beta,
                               float* d_weight, float* d_bias, float* scratch) {
  CudaConvolution(*this, c, rows)
      .Backward(x, weight, dy, dx, beta, d_weight, scratch);
  if (d_bias != nullptr) {
    ChannelSum(rows, c.out_channels, c.window.out_pixels(), dy, beta, d_bias);
  }
}

void CudaOps::ChannelSum(int64_t rows, int64_t channels, int64_t pixels,
                         const float* x, float beta, float* out) {
  const BatchNormShape s{rows, channels, pixels};
  const cudaStream_t stream = Stream();
  double* scratch = Scratch(BatchNormScratchBytes(s));
  if (scratch == nullptr) return;
  Record(LaunchChannelSum(stream, s, x, beta, out, scratch));
}

void CudaOps::MaxPool(const Window& w, int64_t planes, const float* x, float* y,
                      int32_t* argmax) {
  Record(LaunchMaxPool(Stream(), w, planes, x, y, argmax));
}

void CudaOps::MaxPoolBackward(const Window& w, int64_t planes, const float* dy,
                              const int32_t* argmax, float* dx) {
  Record(LaunchMaxPoolBackward(Stream(), w, planes, dy, argmax, dx));
}

void CudaOps::AveragePool(const Window& w, bool count_include_pad,
                          int64_t planes, const float* x, float* y) {
  Record(LaunchAveragePool(Stream(), w, count_include_pad, planes, x, y));
}

void CudaOps::AveragePoolBackward(const Window& w, bool count_include_pad,
                                  int64_t planes, const float* dy, float* dx) {
  Record(LaunchAveragePoolBackward(Stream(), w, count_include_pad, planes, dy,
                                   dx));
}

void CudaOps::BatchNorm(const BatchNormShape& s, float epsilon, const float* x,
                        const float* gamma, const float* beta, float* y,
                        float* mean, float* rstd, float* variance) {
  const cudaStream_t stream = Stream();
  double* scratch = Scratch(BatchNormScratchBytes(s));
  if (scratch == nullptr) return;
  Record(LaunchBatchNorm(stream, s, epsilon, x, gamma, beta, y, mean, rstd,
                         variance, scratch));
}

void CudaOps::BatchNormWith(const BatchNormShape& s, float epsilon,
                            const float* x, const float* gamma,
                            const float* beta, const float* mean,
                            const float* variance, float* y) {
  Record(LaunchBatchNormWith(Stream(), s, epsilon, x, gamma, beta, mean,
                             variance, y));
}

void CudaOps::BatchNormBackward(const BatchNormShape& s, const float* x,
                                const float* gamma, const float* mean,
                                const float* rstd, const float* dy, float keep,
                                float* dx, float* dgamma, float* dbeta) {
  const cudaStream_t stream = Stream();
  double* scratch = Scratch(BatchNormScratchBytes(s));
  if (scratch == nullptr) return;
  Record(LaunchBatchNormBackward(stream, s, x, gamma, mean, rstd, dy, keep, dx,
                                 dgamma, dbeta, scratch));
}

// One float per query.
int64_t CudaOps::AttentionScratch(const AttentionShape& s) { return s.rows(); }

void CudaOps::Attention(const AttentionShape& s, const float* q, const float* k,
                        const float* v, float* y, float* log_sum,
                        float* /*scratch*/) {
  Record(LaunchAttention(Stream(), s, rounds(), q, k, v, y, log_sum));
}

void CudaOps::AttentionBackward(const AttentionShape& s, const float* q,
                                const float* k, const float* v, const float* y,
                                const float* log_sum, const float* dy,
                                float* dq, float* dk, float* dv,
                                float* scratch) {
  Record(LaunchAttentionBackward(Stream(), s, rounds(), q, k, v, y, log_sum, dy,
                                 scratch, dq, dk, dv));
}

}  // namespace tributary
