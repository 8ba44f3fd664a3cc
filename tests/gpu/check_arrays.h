// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/device.h"
#include "kernels/ops.h"
#include "tests/gpu/agreement.h"

namespace tributary::testing {

// Reproducible numbers in [-1, 1), some exactly 0, from the middle bits of a
// linear congruential sequence.
inline std::vector<float> Numbers(int64_t n, uint64_t seed) {
  uint64_t state = seed * 2654435761u + 12345;
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int32_t bits = static_cast<int32_t>(state >> 40) - (1 << 23);
    x = bits % 17 == 0 ? 0.0f : static_cast<float>(bits) / (1 << 23);
  }
  return numbers;
}

// Numbers in [0, bound).
inline std::vector<int64_t> Integers(int64_t n, int64_t bound, uint64_t seed) {
  std::vector<int64_t> integers;
  for (float x : Numbers(n, seed)) {
    integers.push_back(
        static_cast<int64_t>((x + 1) / 2 * static_cast<float>(bound)) % bound);
  }
  return integers;
}

// Pages of host memory, pinned if the device can.
class PinnedPages {
 public:
  PinnedPages(Ops& ops, size_t bytes)
      : data_(static_cast<float*>(
            std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage))) {
    if (data_ == nullptr) std::abort();
    std::string why_not;
    pin_ = ops.Pin(data_, bytes, &why_not);
  }
  ~PinnedPages() {
    pin_ = nullptr;
    std::free(data_);
  }
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;

  float* data() const { return data_; }
  bool pinned() const { return pin_ != nullptr; }

 private:
  static constexpr size_t kPage = 4096;
  float* const data_;
  std::unique_ptr<PinnedMemory> pin_;
};

// An array in a device's memory, copied in and out through Ops.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(Ops& ops, const std::vector<T>& values)
      : ops_(ops), size_(values.size()) {
    data_ = static_cast<T*>(ops.Allocate(size_ * sizeof(T)));
    if (data_ == nullptr) {
      std::fprintf(stderr, "no device memory for %zu bytes\n",
                   size_ * sizeof(T));
      std::abort();
    }
    ops.CopyIn(data_, values.data(), size_ * sizeof(T));
  }
  ~DeviceArray() { ops_.Free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }

  std::vector<double> Download() const {
    std::vector<T> values(size_);
    ops_.CopyOut(values.data(), data_, size_ * sizeof(T));
    return std::vector<double>(values.begin(), values.end());
  }

 private:
  Ops& ops_;
  size_t size_;
  T* data_;
};

using Floats = DeviceArray<float>;
using Ids = DeviceArray<int64_t>;

// Add the checks of one file to the list.
void AddLayerChecks(std::vector<AgreementCheck>* checks);
void AddModelChecks(std::vector<AgreementCheck>* checks);
void AddLossChecks(std::vector<AgreementCheck>* checks);
void AddEmbeddingChecks(std::vector<AgreementCheck>* checks);
void AddUpdateChecks(std::vector<AgreementCheck>* checks);

}  // namespace tributary::testing
