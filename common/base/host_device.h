// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks one-element formulas that the host's loops and the device's kernels
// share. They are straight-line code: branches would keep the host's compiler
// from vectorizing the loops. Contraction into fused multiply-adds is off on
// both sides, so a formula without library calls gives the same bits on both.
#ifdef __CUDACC__
#define TRIBUTARY_HOST_DEVICE __host__ __device__
#else
#define TRIBUTARY_HOST_DEVICE
#endif
