// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace tributary {

// Float memory on a 64-byte boundary that only grows, so that refilling a batch
// allocates only once.
class AlignedFloats {
 public:
  // Makes room for `size` floats. The contents are lost when the memory grows.
  void Resize(size_t size) {
    if (size > capacity_) {
      memory_.reset(static_cast<float*>(
          ::operator new (size * sizeof(float), std::align_val_t{kAlignment})));
      capacity_ = size;
    }
    size_ = size;
  }

  float* data() { return memory_.get(); }
  const float* data() const { return memory_.get(); }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kAlignment = 64;  // a cache line, an AVX-512 register
  struct Release {
    void operator()(float* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };

  std::unique_ptr<float, Release> memory_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

// The samples of one micro-batch for one rank. The batch is valid until its
// owner refills it.
struct Batch {
  int64_t rows = 0;             // may be 0 in an epoch's short last batch
  AlignedFloats features;       // [rows, features of a sample]
  std::vector<int64_t> labels;  // [rows, target width] for TargetKind::kClass
  std::vector<float> targets;   // [rows, target width] for the other kinds

  // Local row i is row first_row + i * row_stride of the step's global batch,
  // counted over all its micro-batches (the key of dropout).
  int64_t first_row = 0;
  int64_t row_stride = 1;

  int64_t step = 0;         // optimizer step, from 0
  int64_t micro_batch = 0;  // within the step, from 0
};

}  // namespace tributary
