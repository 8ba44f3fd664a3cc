// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/launch.h"

namespace tributary {

// The elementwise kernel of every formula: reads kIn arrays and writes kOut. A
// thread takes four adjacent elements at a time if the pointers allow 16-byte
// accesses, so that enough loads are in flight to saturate the memory bus. A
// functor has
//   __device__ void operator()(const float* in, float* out) const
// for one element, in[kIn] to out[kOut]. Arrays may be identical, but must not
// overlap with a shift.
template <int kIn, int kOut>
struct MapArrays {
  const float* in[kIn];
  float* out[kOut];
};

template <int kIn, int kOut, typename Functor>
__device__ void MapOne(const MapArrays<kIn, kOut>& arrays, Functor functor,
                       int64_t i) {
  float in[kIn], out[kOut];
  for (int a = 0; a < kIn; ++a) in[a] = arrays.in[a][i];
  functor(in, out);
  for (int a = 0; a < kOut; ++a) arrays.out[a][i] = out[a];
}

template <int kIn, int kOut, typename Functor>
__device__ void MapFour(const MapArrays<kIn, kOut>& arrays, Functor functor,
                        int64_t quad) {
  float4 loaded[kIn];
  for (int a = 0; a < kIn; ++a) {
    loaded[a] = reinterpret_cast<const float4*>(arrays.in[a])[quad];
  }
  float in[4][kIn], out[4][kOut];
  for (int a = 0; a < kIn; ++a) {
    in[0][a] = loaded[a].x;
    in[1][a] = loaded[a].y;
    in[2][a] = loaded[a].z;
    in[3][a] = loaded[a].w;
  }
  for (int e = 0; e < 4; ++e) functor(in[e], out[e]);
  for (int a = 0; a < kOut; ++a) {
    reinterpret_cast<float4*>(arrays.out[a])[quad] =
        make_float4(out[0][a], out[1][a], out[2][a], out[3][a]);
  }
}

template <bool kQuads, int kIn, int kOut, typename Functor>
__global__ void MapKernel(int64_t n, MapArrays<kIn, kOut> arrays,
                          Functor functor) {
  int64_t done = 0;
  if (kQuads) {
    const int64_t quads = n / 4;
    for (int64_t q = ThreadIndex(); q < quads; q += ThreadCount()) {
      MapFour(arrays, functor, q);
    }
    done = quads * 4;
  }
  for (int64_t i = done + ThreadIndex(); i < n; i += ThreadCount()) {
    MapOne(arrays, functor, i);
  }
}

template <int kIn, int kOut>
bool AllowsQuads(const MapArrays<kIn, kOut>& arrays) {
  uintptr_t bits = 0;
  for (const float* p : arrays.in) bits |= reinterpret_cast<uintptr_t>(p);
  for (const float* p : arrays.out) bits |= reinterpret_cast<uintptr_t>(p);
  return bits % sizeof(float4) == 0;
}

template <int kIn, int kOut, typename Functor>
DeviceStatus LaunchMap(cudaStream_t stream, int64_t n,
                       const MapArrays<kIn, kOut>& arrays, Functor functor) {
  if (n == 0) return DeviceStatus();
  if (AllowsQuads(arrays)) {
    MapKernel<true>
        <<<Blocks((n + 3) / 4), kThreads, 0, stream>>>(n, arrays, functor);
  } else {
    MapKernel<false><<<Blocks(n), kThreads, 0, stream>>>(n, arrays, functor);
  }
  return CudaStatus(cudaGetLastError());
}

}  // namespace tributary
