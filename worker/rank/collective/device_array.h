// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/host/memory/shared_arena.h"
#include "kernels/ops.h"

namespace tributary {

// An array in a device's memory or in an arena of host memory. The destructor
// frees it. T must be trivial.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  ~DeviceArray() { Reset(); }
  DeviceArray(DeviceArray&& other) noexcept { *this = std::move(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    if (this != &other) {
      Reset();
      ops_ = std::exchange(other.ops_, nullptr);
      arena_ = std::move(other.arena_);
      data_ = std::exchange(other.data_, nullptr);
    }
    return *this;
  }

  // Allocates a 64-byte aligned array with undefined contents.
  // ResourceExhausted when the device does not have enough memory.
  static absl::StatusOr<DeviceArray> Allocate(Ops* ops, int64_t size) {
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    DeviceArray array;
    array.ops_ = ops;
    array.data_ = static_cast<T*>(ops->Allocate(bytes));
    if (array.data_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no room for ", bytes, " bytes on device ", ops->device_name()));
    }
    return array;
  }

  // Allocates in the arena, which other processes can read. Returns an empty
  // array when the arena has no room.
  static DeviceArray AllocateIn(const std::shared_ptr<SharedArena>& arena,
                                int64_t size) {
    DeviceArray array;
    array.data_ =
        static_cast<T*>(arena->Allocate(static_cast<size_t>(size) * sizeof(T)));
    array.arena_ = arena;
    return array;
  }

  T* data() const { return data_; }

 private:
  void Reset() {
    if (data_ == nullptr) return;
    if (arena_) {
      arena_->Free(data_);
    } else {
      ops_->Free(data_);
    }
    data_ = nullptr;
  }

  Ops* ops_ = nullptr;
  std::shared_ptr<SharedArena> arena_;  // instead of ops_
  T* data_ = nullptr;
};

}  // namespace tributary
