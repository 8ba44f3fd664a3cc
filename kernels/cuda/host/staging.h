// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "kernels/device_status.h"

namespace tributary {

// Copies between host memory and the device: directly if the host memory is
// pinned (PinMemory), else through pinned buffers, in chunks. The device's copy
// engine works on one buffer while the host fills or empties the next, and
// copies to the device overlap with kernels.
class Staging {
 public:
  static std::unique_ptr<Staging> Create(DeviceStatus* status);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns when `host` may be reused; the copy itself is stream-ordered.
  DeviceStatus CopyIn(cudaStream_t stream, void* device, const void* host,
                      size_t bytes);
  // Returns when `host` is filled. After an error no copy into the buffers is
  // pending, so the next copy may use them.
  DeviceStatus CopyOut(cudaStream_t stream, void* host, const void* device,
                       size_t bytes);

 private:
  static constexpr size_t kChunkBytes = 1 << 20;
  static constexpr int kBuffers = 4;

  struct Buffer {
    void* memory = nullptr;      // pinned, kChunkBytes
    cudaEvent_t done = nullptr;  // after the buffer's last copy
  };

  Staging() = default;
  DeviceStatus Allocate();
  DeviceStatus CopyThrough(cudaStream_t stream, char* to, const char* from,
                           size_t bytes);

  Buffer buffers_[kBuffers];
  int next_ = 0;
};

}  // namespace tributary
