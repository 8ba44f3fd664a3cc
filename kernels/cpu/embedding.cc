// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/vectorize.h"

namespace tributary {
namespace {

// y += scale x.
TRIBUTARY_CLONES void AddScaled(int64_t n, float scale, const float* x,
                                float* y) {
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

TRIBUTARY_CLONES double Dot(int64_t n, const float* x, const float* y) {
  return LaneSum(n, [x, y](int64_t i) { return double{x[i]} * double{y[i]}; });
}

// The weight of position i in its bag; for a mean, divided by the bag's size.
float IdWeight(const EmbeddingBags& bags, int64_t bag, int64_t i) {
  const float weight = bags.weights == nullptr ? 1.0f : bags.weights[i];
  if (!bags.mean) return weight;
  return weight / static_cast<float>(bags.offsets[bag + 1] - bags.offsets[bag]);
}

}  // namespace

void CpuOps::Embedding(int64_t count, int64_t dim, const int64_t* ids,
                       const float* table, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0) {
      std::fill_n(y + i * dim, dim, 0.0f);
    } else {
      std::copy_n(table + ids[i] * dim, dim, y + i * dim);
    }
  }
}

void CpuOps::EmbeddingBackward(int64_t count, int64_t dim, const int64_t* ids,
                               const float* dy, float* d_table) {
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0) continue;
    AddScaled(dim, 1.0f, dy + i * dim, d_table + ids[i] * dim);
  }
}

void CpuOps::EmbeddingBag(const EmbeddingBags& bags, int64_t dim,
                          const float* table, float* y) {
  for (int64_t b = 0; b < bags.count; ++b) {
    float* out = y + b * dim;
    std::fill_n(out, dim, 0.0f);
    for (int64_t i = bags.offsets[b]; i < bags.offsets[b + 1]; ++i) {
      AddScaled(dim, IdWeight(bags, b, i), table + bags.ids[i] * dim, out);
    }
  }
}

void CpuOps::EmbeddingBagBackward(const EmbeddingBags& bags, int64_t dim,
                                  const float* table, const float* dy,
                                  float* d_table, float* d_weights) {
  for (int64_t b = 0; b < bags.count; ++b) {
    const float* upstream = dy + b * dim;
    const int64_t end = bags.offsets[b + 1];
    for (int64_t i = bags.offsets[b]; i < end; ++i) {
      const int64_t row = bags.ids[i] * dim;
      AddScaled(dim, IdWeight(bags, b, i), upstream, d_table + row);
      if (d_weights == nullptr) continue;
      const double dot = Dot(dim, upstream, table + row);
      const int64_t size = bags.mean ? end - bags.offsets[b] : 1;
      d_weights[i] = static_cast<float>(dot / static_cast<double>(size));
    }
  }
}

void CpuOps::DotInteraction(int64_t batch, int64_t features, int64_t dim,
                            const float* x, float* y) {
  for (int64_t b = 0; b < batch; ++b) {
    const float* sample = x + b * features * dim;
    for (int64_t i = 1; i < features; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        *y++ = static_cast<float>(Dot(dim, sample + i * dim, sample + j * dim));
      }
    }
  }
}

void CpuOps::DotInteractionBackward(int64_t batch, int64_t features,
                                    int64_t dim, const float* x,
                                    const float* dy, float* dx) {
  std::fill_n(dx, batch * features * dim, 0.0f);
  for (int64_t b = 0; b < batch; ++b) {
    const float* sample = x + b * features * dim;
    float* gradient = dx + b * features * dim;
    for (int64_t i = 1; i < features; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        const float upstream = *dy++;
        AddScaled(dim, upstream, sample + j * dim, gradient + i * dim);
        AddScaled(dim, upstream, sample + i * dim, gradient + j * dim);
      }
    }
  }
}

}  // namespace tributary
