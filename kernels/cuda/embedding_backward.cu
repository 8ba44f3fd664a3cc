// SPDX-License-Identifier: Apache-2.0
// The gradients of embedding tables, without atomics on numbers and in the
// order of positions: a stable sort brings the positions of each id together,
// and then one group of threads per id adds their gradients one by one.
#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/embedding.cuh"
#include "kernels/cuda/launchers.h"

namespace tributary {
namespace {

// Positions that are sorted at a time, which bounds the scratch memory.
constexpr int64_t kMostSorted = 1 << 22;

// The sort compares only these bits. Ids that differ only in higher bits may
// mix; AddRunsKernel tells them apart.
constexpr int kSortedBits = 32;

__device__ uint32_t SortedBits(int64_t id) { return static_cast<uint32_t>(id); }

// Scratch memory for `count` positions.
struct Scratch {
  Scratch(void* memory, int64_t count, bool bags) {
    auto* at = static_cast<char*>(memory);
    const auto take = [&](auto** array, size_t bytes) {
      *array = reinterpret_cast<std::remove_pointer_t<decltype(array)>>(at);
      at += (bytes + 255) / 256 * 256;
    };
    const auto n = static_cast<size_t>(count);
    take(&ids, n * sizeof(int64_t));
    take(&positions, n * sizeof(int));
    take(&sorted, n * sizeof(int));
    if (bags) {
      take(&rows, n * sizeof(int64_t));
      take(&scales, n * sizeof(float));
    }
    cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, ids, ids, positions,
                                    sorted, static_cast<int>(count), 0,
                                    kSortedBits);
    take(&sort, sort_bytes);
    bytes = static_cast<size_t>(at - static_cast<char*>(memory));
  }

  int64_t* ids = nullptr;    // sorted
  int* positions = nullptr;  // 0, 1, ...
  int* sorted = nullptr;     // the positions in the order of ids
  int64_t* rows = nullptr;   // of bags: by position, the bag
  float* scales = nullptr;   // of bags: by position, its weight
  char* sort = nullptr;
  size_t sort_bytes = 0;
  size_t bytes = 0;
};

// The row of dy that holds a position's gradient, and its weight.
struct PlainSource {
  __device__ int64_t Row(int position) const { return position; }
  __device__ float Scale(int) const { return 1.0f; }
};
struct BagSource {
  const int64_t* rows;
  const float* scales;
  __device__ int64_t Row(int position) const { return rows[position]; }
  __device__ float Scale(int position) const { return scales[position]; }
};

__global__ void PositionsKernel(int count, int* positions) {
  const auto i = static_cast<int>(ThreadIndex());
  if (i < count) positions[i] = i;
}

// The bags of the positions from `first` on.
__global__ void BagsKernel(EmbeddingBags bags, int64_t first, int count,
                           int64_t* rows, float* scales) {
  const auto i = static_cast<int>(ThreadIndex());
  if (i >= count) return;
  const int64_t bag = BagOf(bags, first + i);
  rows[i] = bag;
  scales[i] = IdWeight(bags, bag, first + i);
}

// Whether place k is the first of its id.
__device__ bool IsFirst(const int64_t* ids, int k) {
  for (int j = k - 1; j >= 0 && SortedBits(ids[j]) == SortedBits(ids[k]); --j) {
    if (ids[j] == ids[k]) return false;
  }
  return true;
}

__device__ void AddScaled(float scale, float x, float* y) { *y += scale * x; }
__device__ void AddScaled(float scale, const float4& x, float4* y) {
  y->x += scale * x.x;
  y->y += scale * x.y;
  y->z += scale * x.z;
  y->w += scale * x.w;
}

// Adds the gradients of the id at place k to *sum. kAhead of them are loaded at
// once.
template <typename Vector, typename Source>
__device__ void AddRun(int count, const int64_t* ids, const int* sorted,
                       const Source& source, const Vector* dy, int64_t dim,
                       int k, Vector* sum) {
  constexpr int kAhead = 8;
  const int64_t id = ids[k];
  for (bool more = true; more; k += kAhead) {
    Vector terms[kAhead];
    float scales[kAhead];
    bool takes[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      takes[u] = k + u < count && ids[k + u] == id;
      if (!takes[u]) continue;
      const int position = sorted[k + u];
      terms[u] = dy[source.Row(position) * dim];
      scales[u] = source.Scale(position);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (takes[u]) AddScaled(scales[u], terms[u], sum);
    }
    const int last = k + kAhead - 1;
    more = last < count && SortedBits(ids[last]) == SortedBits(id);
  }
}

// dim: Vectors in a row. A block's threads along y take places of the sorted
// ids, and its threads along x the columns.
template <typename Vector, typename Source>
__global__ void AddRunsKernel(int count, int64_t dim, const int64_t* ids,
                              const int* sorted, Source source,
                              const Vector* dy, Vector* d_table) {
  const auto k = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  if (k >= count || ids[k] < 0 || !IsFirst(ids, k)) return;
  Vector* to = d_table + ids[k] * dim;
  for (int64_t c = blockIdx.y * int64_t{blockDim.x} + threadIdx.x; c < dim;
       c += gridDim.y * int64_t{blockDim.x}) {
    Vector sum = to[c];
    AddRun(count, ids, sorted, source, dy + c, dim, k, &sum);
    to[c] = sum;
  }
}

template <typename Source>
void AddRuns(cudaStream_t stream, int count, int64_t dim,
             const Scratch& scratch, const Source& source, const float* dy,
             float* d_table) {
  if (TakesQuads(dim, dy, d_table)) {
    const RowsGrid grid = GridOfRows(count, dim / 4);
    AddRunsKernel<<<grid.blocks, grid.threads, 0, stream>>>(
        count, dim / 4, scratch.ids, scratch.sorted, source,
        reinterpret_cast<const float4*>(dy),
        reinterpret_cast<float4*>(d_table));
    return;
  }
  const RowsGrid grid = GridOfRows(count, dim);
  AddRunsKernel<<<grid.blocks, grid.threads, 0, stream>>>(
      count, dim, scratch.ids, scratch.sorted, source, dy, d_table);
}

DeviceStatus Sort(cudaStream_t stream, int count, const int64_t* ids,
                  Scratch* scratch) {
  const int blocks = (count + kThreads - 1) / kThreads;
  PositionsKernel<<<blocks, kThreads, 0, stream>>>(count, scratch->positions);
  return CudaStatus(cub::DeviceRadixSort::SortPairs(
      scratch->sort, scratch->sort_bytes, ids, scratch->ids, scratch->positions,
      scratch->sorted, count, 0, kSortedBits, stream));
}

// Calls use(first, count) for the parts of `count` positions that are sorted at
// a time, in their order.
template <typename Use>
DeviceStatus ForEachPart(int64_t count, Use use) {
  for (int64_t first = 0; first < count; first += kMostSorted) {
    const auto part = static_cast<int>(std::min(kMostSorted, count - first));
    if (DeviceStatus status = use(first, part); !status.ok()) return status;
    if (DeviceStatus status = CudaStatus(cudaGetLastError()); !status.ok()) {
      return status;
    }
  }
  return DeviceStatus();
}

}  // namespace

size_t EmbeddingBackwardScratchBytes(int64_t count, bool bags) {
  return Scratch(nullptr, std::min(count, kMostSorted), bags).bytes;
}

DeviceStatus LaunchEmbeddingBackward(cudaStream_t stream, int64_t count,
                                     int64_t dim, const int64_t* ids,
                                     const float* dy, float* d_table,
                                     void* memory) {
  if (dim == 0) return DeviceStatus();
  return ForEachPart(count, [&](int64_t first, int part) {
    Scratch scratch(memory, part, false);
    DeviceStatus status = Sort(stream, part, ids + first, &scratch);
    AddRuns(stream, part, dim, scratch, PlainSource(), dy + first * dim,
            d_table);
    return status;
  });
}

DeviceStatus LaunchEmbeddingBagGradient(cudaStream_t stream,
                                        const EmbeddingBags& bags, int64_t dim,
                                        const float* dy, float* d_table,
                                        void* memory) {
  if (dim == 0) return DeviceStatus();
  return ForEachPart(bags.num_ids, [&](int64_t first, int part) {
    Scratch scratch(memory, part, true);
    const int blocks = (part + kThreads - 1) / kThreads;
    BagsKernel<<<blocks, kThreads, 0, stream>>>(bags, first, part, scratch.rows,
                                                scratch.scales);
    DeviceStatus status = Sort(stream, part, bags.ids + first, &scratch);
    AddRuns(stream, part, dim, scratch, BagSource{scratch.rows, scratch.scales},
            dy, d_table);
    return status;
  });
}

}  // namespace tributary
