// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/ops/memory_ops.h"

namespace tributary::testing {

// Host memory that a simulated device has pinned. Like a driver, it keeps the
// pages that it was given, wherever the memory's addresses lead later.
class PinnedPages final : public PinnedMemory {
 public:
  PinnedPages(void* memory, size_t bytes) : memory_(memory), bytes_(bytes) {
    // Maps the pages of a shared mapping again. Other pages are never remapped.
    void* const again = mremap(memory, 0, bytes, MREMAP_MAYMOVE);
    if (again != MAP_FAILED) mapped_ = static_cast<char*>(again);
    All& all = AllPages();
    absl::MutexLock lock(&all.mu);
    EXPECT_TRUE(all.pinned.insert({Address(memory), this}).second)
        << "it is pinned already";
  }
  ~PinnedPages() override {
    All& all = AllPages();
    absl::MutexLock lock(&all.mu);
    all.pinned.erase(Address(memory_));
    if (mapped_ != nullptr) munmap(mapped_, bytes_);
  }

  // Where a copy to `host` goes.
  static void* Of(void* host) {
    All& all = AllPages();
    absl::MutexLock lock(&all.mu);
    auto found = all.pinned.upper_bound(Address(host));
    if (found == all.pinned.begin()) return host;
    const PinnedPages& pages = *(--found)->second;
    const size_t offset = Address(host) - found->first;
    const bool inside = offset < pages.bytes_ && pages.mapped_ != nullptr;
    return inside ? pages.mapped_ + offset : host;
  }

 private:
  struct All {
    absl::Mutex mu;
    std::map<uintptr_t, const PinnedPages*> pinned ABSL_GUARDED_BY(mu);
  };
  static All& AllPages() {
    static All all;
    return all;
  }
  static uintptr_t Address(const void* memory) {
    return reinterpret_cast<uintptr_t>(memory);
  }

  void* const memory_;
  const size_t bytes_;
  char* mapped_ = nullptr;
};

}  // namespace tributary::testing
