#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/host/shared_arena.h"

namespace tributary {

// A reference-counted buffer of floats, 64-byte-aligned, shared by a block and
// the answers that are being sent. A sole holder may write in place. Otherwise
// it must write to another buffer, so that an answer never changes while it is
// sent.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(int64_t num_elements)
      : SharedBuffer(num_elements, nullptr) {}
  // In the arena, which other processes may read, if there is one and it has
  // room.
  SharedBuffer(int64_t num_elements, std::shared_ptr<SharedArena> arena)
      : rep_(new Rep) {
    const size_t bytes =
        (sizeof(float) * static_cast<size_t>(num_elements) + 63) / 64 * 64;
    if (arena) rep_->data = static_cast<float*>(arena->Allocate(bytes));
    if (rep_->data != nullptr) {
      rep_->arena = std::move(arena);
      return;
    }
    rep_->data =
        static_cast<float*>(std::aligned_alloc(64, bytes ? bytes : 64));
    TRIBUTARY_CHECK(rep_->data != nullptr);
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
        rep_->arena->Free(rep_->data);
      } else {
        std::free(rep_->data);
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
    float* data = nullptr;
    std::shared_ptr<SharedArena> arena;  // that data is in; or none
  };
  Rep* rep_ = nullptr;
};

}  // namespace tributary
