// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/host/memory/shared_arena.h"

namespace tributary {

// A reference-counted buffer of floats, 64-byte-aligned, shared by a block and
// the answers that are being sent. A sole holder may write in place. Otherwise
// it must write to another buffer, so that an answer never changes while it is
// sent.
//
// Large buffers begin at a fixed place of a page, kStaggerBytes further for
// each `stagger`. Processors compare the low 12 bits of addresses first: a load
// whose bits match a recent store to another buffer waits for this store.
// Buffers that one loop reads and writes side by side therefore differ in
// `stagger`.
class SharedBuffer {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kStaggerBytes = 1088;  // 17 cache lines

  // Whether a buffer is large: without a `stagger` it then begins with a page.
  static bool HasPages(int64_t num_elements) {
    return num_elements * static_cast<int64_t>(sizeof(float)) >=
           static_cast<int64_t>(8 * kPageBytes);
  }

  SharedBuffer() = default;
  // Allocates in `arena`, which other processes may read, if there is one and
  // it has room.
  explicit SharedBuffer(int64_t num_elements, int stagger = 0,
                        std::shared_ptr<SharedArena> arena = nullptr)
      : rep_(new Rep) {
    const size_t bytes = sizeof(float) * static_cast<size_t>(num_elements);
    const bool large = HasPages(num_elements);
    const size_t skip =
        large ? kStaggerBytes * static_cast<size_t>(stagger) : 0;
    if (arena) rep_->memory = arena->Allocate(skip + bytes);
    if (rep_->memory != nullptr) {
      rep_->arena = std::move(arena);
    } else {
      const size_t alignment = large ? kPageBytes : 64;
      const size_t size =
          (skip + bytes + alignment - 1) / alignment * alignment;
      rep_->memory = std::aligned_alloc(alignment, size ? size : alignment);
      TRIBUTARY_CHECK(rep_->memory != nullptr);
    }
    rep_->data =
        reinterpret_cast<float*>(static_cast<char*>(rep_->memory) + skip);
  }
  SharedBuffer(const SharedBuffer& other) : rep_(other.rep_) {
    if (rep_) rep_->references.fetch_add(1, std::memory_order_relaxed);
  }
  SharedBuffer(SharedBuffer&& other) noexcept
      : rep_(std::exchange(other.rep_, nullptr)) {}
  SharedBuffer& operator=(SharedBuffer other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~SharedBuffer() {
    if (rep_ && rep_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (rep_->arena) {
        rep_->arena->Free(rep_->memory);
      } else {
        std::free(rep_->memory);
      }
      delete rep_;
    }
  }

  explicit operator bool() const { return rep_ != nullptr; }
  float* data() const { return rep_->data; }

  // True when nobody else holds the buffer. Only a holder can add references,
  // so the answer stays true. All reads by former holders happened before.
  bool Unique() const {
    return rep_->references.load(std::memory_order_acquire) == 1;
  }

 private:
  struct Rep {
    std::atomic<int> references{1};
    void* memory = nullptr;
    float* data = nullptr;
    std::shared_ptr<SharedArena> arena;  // holds `memory`; or null
  };
  Rep* rep_ = nullptr;
};

}  // namespace tributary
