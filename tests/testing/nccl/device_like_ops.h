// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "kernels/cpu/cpu_ops.h"
#include "tests/testing/nccl/pinned_pages.h"

namespace tributary::testing {

// Simulates a device on a machine without one. Its memory counts as separate
// from the host's, and the test fails when a host array is used as a device
// array or vice versa. Copies to the device arrive late: at the next other call
// or Synchronize, so whoever uses another Ops has to wait for them. A copy from
// the device to pinned memory goes to the pages that were pinned, as a driver's
// does, even if other pages are at these addresses now. Calls can be made to
// fail as on a device: they leave their output unchanged, and the fault is
// kept.
class DeviceLikeOps final : public CpuOps {
 public:
  DeviceLikeOps() : CpuOps(ProductPrecision::kFloat32) {}

  const char* device_name() const override { return "device-like"; }
  bool is_host() const override { return false; }
  std::string device_id() const override { return id_; }
  void SetId(const std::string& id) { id_ = id; }

  int copies_in() const { return copies_in_; }
  // `called` runs before each copy from the device, on its thread. Set it
  // before other threads use this object.
  void OnCopyOut(std::function<void()> called) { on_copy_out_ = called; }

  // Makes the `nth` call from now (counted from 1) fail, and no other.
  void FailCopyOut(int nth) { copies_out_until_fault_ = nth; }
  void FailGrainSquares(int nth) { squares_until_fault_ = nth; }
  void FailPins(const std::string& why) { pin_error_ = why; }
  void Fail() {
    absl::MutexLock lock(&mu_);
    if (fault_.ok()) fault_ = DeviceStatus::Error("unspecified launch failure");
  }

  DeviceStatus Synchronize() override {
    Arrive();
    absl::MutexLock lock(&mu_);
    return std::exchange(fault_, DeviceStatus());
  }
  DeviceStatus fault() const override {
    absl::MutexLock lock(&mu_);
    return fault_;
  }

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
  std::unique_ptr<PinnedMemory> Pin(void* memory, size_t bytes,
                                    std::string* why_not) override {
    ExpectOnDevice(memory, bytes, false);
    *why_not = pin_error_;
    if (!pin_error_.empty()) return nullptr;
    return std::make_unique<PinnedPages>(memory, bytes);
  }
  void CopyIn(void* device, const void* host, size_t bytes) override {
    ExpectOnDevice(device, bytes, true);
    ExpectOnDevice(host, bytes, false);
    const auto* from = static_cast<const char*>(host);
    absl::MutexLock lock(&mu_);
    under_way_.push_back({device, {from, from + bytes}});
    ++copies_in_;
  }
  void CopyOut(void* host, const void* device, size_t bytes) override {
    ExpectOnDevice(device, bytes, true);
    ExpectOnDevice(host, bytes, false);
    if (on_copy_out_) on_copy_out_();
    if (--copies_out_until_fault_ == 0) return Fail();
    Arrive();
    CpuOps::CopyOut(PinnedPages::Of(host), device, bytes);
  }
  void GrainSquares(int64_t n, int64_t grain, const float* x,
                    double* out) override {
    if (--squares_until_fault_ == 0) return Fail();
    Arrive();
    CpuOps::GrainSquares(n, grain, x, out);
  }
  void Fill(int64_t n, float value, float* y) override {
    Arrive();
    CpuOps::Fill(n, value, y);
  }
  void WeightedSum(int64_t n, int count, const float* const* parts,
                   const float* weights, float* out) override {
    Arrive();
    CpuOps::WeightedSum(n, count, parts, weights, out);
  }
  void OptimizerUpdate(const OptimizerStep& step, int64_t n,
                       const float* gradient, const float* weight_in,
                       float* weight_out, float* const* state) override {
    Arrive();
    CpuOps::OptimizerUpdate(step, n, gradient, weight_in, weight_out, state);
  }
  void OptimizerDirection(const OptimizerStep& step, int64_t n,
                          const float* gradient, const float* weight,
                          float* direction, float* const* state) override {
    Arrive();
    CpuOps::OptimizerDirection(step, n, gradient, weight, direction, state);
  }

 private:
  struct Memory {  // of all these devices
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

  struct Copy {
    void* to;
    std::vector<char> bytes;
  };
  void Arrive() {
    absl::MutexLock lock(&mu_);
    for (const Copy& copy : under_way_) {
      CpuOps::CopyIn(copy.to, copy.bytes.data(), copy.bytes.size());
    }
    under_way_.clear();
  }

  std::string id_;
  std::string pin_error_;  // set before other threads use this object
  std::function<void()> on_copy_out_;
  std::atomic<int> copies_in_ = 0;
  std::atomic<int> copies_out_until_fault_ = 0;
  std::atomic<int> squares_until_fault_ = 0;
  mutable absl::Mutex mu_;
  DeviceStatus fault_ ABSL_GUARDED_BY(mu_);
  std::vector<Copy> under_way_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary::testing
