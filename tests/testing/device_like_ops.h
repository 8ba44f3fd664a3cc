#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cpu/cpu_ops.h"

namespace tributary::testing {

// A device on a machine without one: says that its memory is not the host's,
// and fails the test when an array of the host is taken for one of the device
// or the other way round.
class DeviceLikeOps final : public CpuOps {
 public:
  DeviceLikeOps() : CpuOps(ProductPrecision::kFloat32) {}

  const char* device_name() const override { return "device-like"; }
  bool is_host() const override { return false; }

  void* Allocate(size_t bytes) override {
    void* const memory = CpuOps::Allocate(bytes);
    Memory& all = AllMemory();
    absl::MutexLock lock(&all.mu);
    all.arrays[reinterpret_cast<uintptr_t>(memory)] = bytes;
    return memory;
  }
  void Free(void* memory) override {
    {
      Memory& all = AllMemory();
      absl::MutexLock lock(&all.mu);
      all.arrays.erase(reinterpret_cast<uintptr_t>(memory));
    }
    CpuOps::Free(memory);
  }
  void CopyIn(void* device, const void* host, size_t bytes) override {
    ExpectOnDevice(device, bytes, true);
    ExpectOnDevice(host, bytes, false);
    CpuOps::CopyIn(device, host, bytes);
  }
  void CopyOut(void* host, const void* device, size_t bytes) override {
    ExpectOnDevice(device, bytes, true);
    ExpectOnDevice(host, bytes, false);
    CpuOps::CopyOut(host, device, bytes);
  }

 private:
  struct Memory {  // of all such devices
    absl::Mutex mu;
    std::map<uintptr_t, size_t> arrays ABSL_GUARDED_BY(mu);
  };
  static Memory& AllMemory() {
    static Memory memory;
    return memory;
  }
  static void ExpectOnDevice(const void* data, size_t bytes, bool wanted) {
    if (bytes == 0) return;
    const auto address = reinterpret_cast<uintptr_t>(data);
    Memory& all = AllMemory();
    absl::MutexLock lock(&all.mu);
    auto found = all.arrays.upper_bound(address);
    bool on_device = false;
    if (found != all.arrays.begin()) {
      --found;
      on_device = address + bytes <= found->first + found->second;
    }
    EXPECT_EQ(on_device, wanted) << "an array of " << bytes << " bytes is "
                                 << (on_device ? "the device's" : "the host's");
  }
};

}  // namespace tributary::testing
