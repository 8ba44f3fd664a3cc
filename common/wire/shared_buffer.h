#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "common/base/check.h"

namespace tributary {

// Reference to 64-byte-aligned floats shared by a block and the answers that
// are on their way out. The holder who is alone may write in place; with others
// it writes to another buffer, so an answer never changes under the network.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  explicit SharedBuffer(int64_t num_elements) {
    const size_t bytes =
        (sizeof(float) * static_cast<size_t>(num_elements) + 63) / 64 * 64;
    rep_ = new Rep;
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
      std::free(rep_->data);
      delete rep_;
    }
  }

  explicit operator bool() const { return rep_ != nullptr; }
  float* data() const { return rep_->data; }

  // True when nobody else holds it. Only the holder can make new references,
  // so the answer stays true; what others read happened before.
  bool Unique() const {
    return rep_->references.load(std::memory_order_acquire) == 1;
  }

 private:
  struct Rep {
    std::atomic<int> references{1};
    float* data = nullptr;
  };
  Rep* rep_ = nullptr;
};

}  // namespace tributary
