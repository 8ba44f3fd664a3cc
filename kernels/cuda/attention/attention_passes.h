// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "kernels/device_status.h"
#include "kernels/ops/attention_ops.h"

namespace tributary {

// The parts of LaunchAttention and LaunchAttentionBackward.

struct AttentionCall {
  AttentionShape s;
  bool rounded = false;  // rounds operands of products to bfloat16
  bool quads = false;    // all rows allow 16-byte accesses
};

struct AttentionForwardArrays {
  const float *q, *k, *v;
  float *y, *log_sum;
};

struct AttentionBackwardArrays {
  const float *q, *k, *v, *log_sum, *dy, *dots;
  float *dq, *dk, *dv;
};

// ---- attention_forward.cu and attention_backward.cu: every head dimension.
DeviceStatus LaunchForward(cudaStream_t stream, const AttentionCall& call,
                           const AttentionForwardArrays& a);
DeviceStatus LaunchBackward(cudaStream_t stream, const AttentionCall& call,
                            const AttentionBackwardArrays& a);

// ---- attention_tensor_forward.cu and attention_tensor_backward.cu: operands
// rounded to bfloat16 and heads of at most kMaxTensorDim.
inline constexpr int64_t kMaxTensorDim = 128;
// Sets *found to whether the device and the build have the instructions.
DeviceStatus FindTensorCores(bool* found);
DeviceStatus LaunchTensorForward(cudaStream_t stream, const AttentionCall& call,
                                 const AttentionForwardArrays& a);
DeviceStatus LaunchTensorBackward(cudaStream_t stream,
                                  const AttentionCall& call,
                                  const AttentionBackwardArrays& a);

}  // namespace tributary
