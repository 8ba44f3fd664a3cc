// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device_status.h"

namespace tributary {

// Host memory that stays where it is in the machine's memory, so that CopyIn
// and CopyOut go directly, without staging. Nobody may remap or free the memory
// before the destructor.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
};

// A device and its memory.
class MemoryOps {
 public:
  virtual ~MemoryOps() = default;

  // "cpu" or "cuda: NVIDIA H200".
  virtual const char* device_name() const = 0;
  virtual bool is_host() const = 0;  // device memory is host memory
  // Tells this machine's devices apart: "0000:18:00.0"; empty for the host.
  virtual std::string device_id() const { return ""; }

  // Memory aligned to 64 bytes, or nullptr when there is not enough.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Both return when `host` may be reused; after CopyOut it is filled.
  virtual void CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual void CopyOut(void* host, const void* device, size_t bytes) = 0;
  // `memory` begins with a page and shares its last one with no other pinned
  // memory. Returns nullptr when there is nothing to pin, because device memory
  // is host memory, or when the driver does not pin it; then `why_not` has the
  // reason, and copies are staged.
  virtual std::unique_ptr<PinnedMemory> Pin(void* /*memory*/, size_t /*bytes*/,
                                            std::string* /*why_not*/) {
    return nullptr;
  }
  virtual void Fill(int64_t n, float value, float* y) = 0;
  virtual DeviceStatus Synchronize() = 0;
  // The first fault since the last Synchronize, without waiting. When a CopyOut
  // returns, the faults of all earlier work are known. Results computed or
  // copied out after a fault are invalid and must not be sent.
  virtual DeviceStatus fault() const = 0;
};

}  // namespace tributary
