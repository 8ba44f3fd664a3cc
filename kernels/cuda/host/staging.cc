// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/host/staging.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/host/cuda_status.h"

namespace tributary {

#define TRIBUTARY_RETURN_IF_CUDA_ERROR(call)    \
  do {                                          \
    const cudaError_t tributary_error = (call); \
    if (tributary_error != cudaSuccess) {       \
      return CudaStatus(tributary_error);       \
    }                                           \
  } while (false)

std::unique_ptr<Staging> Staging::Create(DeviceStatus* status) {
  std::unique_ptr<Staging> staging(new Staging);
  *status = staging->Allocate();
  return status->ok() ? std::move(staging) : nullptr;
}

DeviceStatus Staging::Allocate() {
  for (Buffer& buffer : buffers_) {
    TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaMallocHost(&buffer.memory, kChunkBytes));
    TRIBUTARY_RETURN_IF_CUDA_ERROR(
        cudaEventCreateWithFlags(&buffer.done, cudaEventDisableTiming));
  }
  return DeviceStatus();
}

Staging::~Staging() {
  for (Buffer& buffer : buffers_) {
    if (buffer.done != nullptr) cudaEventDestroy(buffer.done);
    if (buffer.memory != nullptr) cudaFreeHost(buffer.memory);
  }
}

namespace {

// Below this size, asking whether memory is pinned costs more than staging.
constexpr size_t kLeastDirect = 64 << 10;

bool IsPinned(const void* byte) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, byte) == cudaSuccess &&
         attributes.type == cudaMemoryTypeHost;
}

bool IsPinned(const void* host, size_t bytes) {
  return bytes >= kLeastDirect && IsPinned(host) &&
         IsPinned(static_cast<const char*>(host) + bytes - 1);
}

DeviceStatus CopyDirectly(cudaStream_t stream, void* to, const void* from,
                          size_t bytes, cudaMemcpyKind kind) {
  TRIBUTARY_RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(to, from, bytes, kind, stream));
  return CudaStatus(cudaStreamSynchronize(stream));
}

}  // namespace

DeviceStatus Staging::CopyIn(cudaStream_t stream, void* device,
                             const void* host, size_t bytes) {
  if (IsPinned(host, bytes)) {
    return CopyDirectly(stream, device, host, bytes, cudaMemcpyHostToDevice);
  }
  auto* to = static_cast<char*>(device);
  const auto* from = static_cast<const char*>(host);
  for (size_t begin = 0; begin < bytes; begin += kChunkBytes) {
    const size_t size = std::min(kChunkBytes, bytes - begin);
    Buffer& buffer = buffers_[next_];
    next_ = (next_ + 1) % kBuffers;
    // An event that was never recorded counts as done.
    TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(buffer.done));
    std::memcpy(buffer.memory, from + begin, size);
    TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(
        to + begin, buffer.memory, size, cudaMemcpyHostToDevice, stream));
    TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaEventRecord(buffer.done, stream));
  }
  return DeviceStatus();
}

DeviceStatus Staging::CopyOut(cudaStream_t stream, void* host,
                              const void* device, size_t bytes) {
  if (IsPinned(host, bytes)) {
    return CopyDirectly(stream, host, device, bytes, cudaMemcpyDeviceToHost);
  }
  DeviceStatus status = CopyThrough(stream, static_cast<char*>(host),
                                    static_cast<const char*>(device), bytes);
  if (!status.ok()) cudaStreamSynchronize(stream);  // keeps the first error
  return status;
}

DeviceStatus Staging::CopyThrough(cudaStream_t stream, char* to,
                                  const char* from, size_t bytes) {
  size_t issued = 0;  // bytes whose copies into buffers were issued
  size_t emptied = 0;
  int oldest = next_;
  while (emptied < bytes) {
    while (issued < bytes && issued - emptied < kBuffers * kChunkBytes) {
      const size_t size = std::min(kChunkBytes, bytes - issued);
      Buffer& buffer = buffers_[next_];
      next_ = (next_ + 1) % kBuffers;
      // Stream order keeps this behind an earlier copy from the buffer to the
      // device.
      TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(
          buffer.memory, from + issued, size, cudaMemcpyDeviceToHost, stream));
      TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaEventRecord(buffer.done, stream));
      issued += size;
    }
    const size_t size = std::min(kChunkBytes, bytes - emptied);
    TRIBUTARY_RETURN_IF_CUDA_ERROR(cudaEventSynchronize(buffers_[oldest].done));
    std::memcpy(to + emptied, buffers_[oldest].memory, size);
    oldest = (oldest + 1) % kBuffers;
    emptied += size;
  }
  return DeviceStatus();
}

}  // namespace tributary
