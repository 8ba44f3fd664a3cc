// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/batch_norm.h"

namespace tributary {

// Softmax and normalizations.
class NormOps {
 public:
  virtual ~NormOps() = default;

  virtual void Softmax(int64_t rows, int64_t cols, const float* x,
                       float* y) = 0;
  virtual void SoftmaxBackward(int64_t rows, int64_t cols, const float* y,
                               const float* dy, float* dx) = 0;
  // Computes the statistics in two passes over each row. mean, rstd: [rows].
  // When beta and mean are null, computes RMSNorm (Zhang, Sennrich 2019), y = x
  // rstd gamma, where rstd is 1 / sqrt(mean of x^2 + epsilon).
  virtual void LayerNorm(int64_t rows, int64_t cols, float epsilon,
                         const float* x, const float* gamma, const float* beta,
                         float* y, float* mean, float* rstd) = 0;
  // Adds to dgamma and dbeta. dx may be dy. mean and dbeta are null for
  // RMSNorm.
  virtual void LayerNormBackward(int64_t rows, int64_t cols, const float* x,
                                 const float* gamma, const float* mean,
                                 const float* rstd, const float* dy, float* dx,
                                 float* dgamma, float* dbeta) = 0;
  // Normalizes each channel over rows and pixels (Ioffe, Szegedy 2015), with
  // statistics in two passes. mean and rstd: [channels], for the backward pass.
  // variance: [channels], unbiased.
  virtual void BatchNorm(const BatchNormShape& s, float epsilon, const float* x,
                         const float* gamma, const float* beta, float* y,
                         float* mean, float* rstd, float* variance) = 0;
  // Normalizes with given statistics, for evaluation.
  virtual void BatchNormWith(const BatchNormShape& s, float epsilon,
                             const float* x, const float* gamma,
                             const float* beta, const float* mean,
                             const float* variance, float* y) = 0;
  // Overwrites dx unless it is null. dgamma and dbeta become `keep` times their
  // old value plus the gradient; keep is 0 or 1.
  virtual void BatchNormBackward(const BatchNormShape& s, const float* x,
                                 const float* gamma, const float* mean,
                                 const float* rstd, const float* dy, float keep,
                                 float* dx, float* dgamma, float* dbeta) = 0;
  // Normalizes each of `groups` equal parts of a sample's channels (Wu, He
  // 2018). mean, rstd: [rows, groups].
  virtual void GroupNorm(const BatchNormShape& s, int64_t groups, float epsilon,
                         const float* x, const float* gamma, const float* beta,
                         float* y, float* mean, float* rstd) = 0;
  // Overwrites dx unless it is null. Adds to dgamma and dbeta.
  virtual void GroupNormBackward(const BatchNormShape& s, int64_t groups,
                                 const float* x, const float* gamma,
                                 const float* mean, const float* rstd,
                                 const float* dy, float* dx, float* dgamma,
                                 float* dbeta) = 0;
};

}  // namespace tributary
