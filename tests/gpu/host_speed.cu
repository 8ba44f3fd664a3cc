// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/speed.h"

namespace tributary::testing {
namespace {

constexpr size_t kBytes = size_t{500} << 20;  // the weights of GPT-2 small
constexpr int kRounds = 5;

double SecondsOf(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

// GB/s of a call that moves `bytes`: the fastest of some rounds after a
// warm-up.
double Fastest(double bytes, const std::function<void()>& call) {
  call();
  double seconds = SecondsOf(call);
  for (int i = 1; i < kRounds; ++i) {
    seconds = std::min(seconds, SecondsOf(call));
  }
  return bytes / seconds / 1e9;
}

// Memory of a file, as servers and workers share it; null on failure.
void* MapFile() {
  const int file = memfd_create("host_speed", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(file, kBytes) == 0) {
    memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  std::memset(memory, 1, kBytes);
  return memory;
}

class Copies {
 public:
  explicit Copies(std::vector<Speed>* speeds) : speeds_(*speeds) {
    cudaMalloc(&in_, kBytes);
    cudaMalloc(&out_, kBytes);
    cudaStreamCreate(&streams_[0]);
    cudaStreamCreate(&streams_[1]);
  }
  ~Copies() {
    cudaFree(in_);
    cudaFree(out_);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void Add(const std::string& memory, void* in, void* out) {
    AddRate(memory + ", to the device", in, nullptr);
    AddRate(memory + ", from the device", nullptr, out);
    AddRate(memory + ", both at once, their sum", in, out);
  }
  // Host memory, null for a direction that is not used.
  void AddRate(const std::string& name, void* in, void* out) {
    const double bytes = kBytes * ((in != nullptr) + (out != nullptr));
    const double rate = Fastest(bytes, [&] {
      if (in != nullptr) {
        cudaMemcpyAsync(in_, in, kBytes, cudaMemcpyHostToDevice, streams_[0]);
      }
      if (out != nullptr) {
        cudaMemcpyAsync(out, out_, kBytes, cudaMemcpyDeviceToHost, streams_[1]);
      }
      cudaDeviceSynchronize();
    });
    const bool ok = cudaGetLastError() == cudaSuccess;
    speeds_.push_back({name, "GB/s", ok ? rate : 0, 0});
  }

 private:
  std::vector<Speed>& speeds_;
  void *in_ = nullptr, *out_ = nullptr;
  cudaStream_t streams_[2] = {};
};

// Registers the memory, measures its copies and ends the registration.
void AddRegistered(const std::string& name, unsigned flags, void* memory,
                   bool writable, Copies* copies, std::vector<Speed>* speeds) {
  cudaError_t status = cudaSuccess;
  const double seconds =
      SecondsOf([&] { status = cudaHostRegister(memory, kBytes, flags); });
  if (status != cudaSuccess) {
    cudaGetLastError();
    speeds->push_back({name + ": " + cudaGetErrorName(status), "ms", 0, 0});
    return;
  }
  speeds->push_back({name + ", registering 500 MiB", "ms", 1e3 * seconds, 0});
  copies->AddRate(name + ", to the device", memory, nullptr);
  if (writable) copies->AddRate(name + ", from the device", nullptr, memory);
  cudaHostUnregister(memory);
}

// Threads that work on a slice each, as those of several servers would.
void OnThreads(int count, const std::function<void(size_t, size_t)>& work) {
  const size_t floats = kBytes / sizeof(float), slice = floats / count;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back(work, i * slice,
                         i + 1 == count ? floats : (i + 1) * slice);
  }
  for (std::thread& thread : threads) thread.join();
}

void AddHostMemory(std::vector<Speed>* speeds) {
  const size_t floats = kBytes / sizeof(float);
  std::vector<float> a(floats, 1), b(floats, 2), c(floats, 3);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  for (int threads = 1; threads <= cores; threads *= threads == 1 ? 4 : 2) {
    const std::string with = ", " + std::to_string(threads) + " threads";
    speeds->push_back(
        {"memcpy, read and written" + with, "GB/s",
         Fastest(2.0 * kBytes,
                 [&] {
                   OnThreads(threads, [&](size_t begin, size_t end) {
                     std::memcpy(&a[begin], &b[begin],
                                 (end - begin) * sizeof(float));
                   });
                 }),
         0});
    speeds->push_back({"triad a = b + s c (McCalpin's STREAM)" + with, "GB/s",
                       Fastest(3.0 * kBytes,
                               [&] {
                                 OnThreads(
                                     threads, [&](size_t begin, size_t end) {
                                       for (size_t i = begin; i < end; ++i) {
                                         a[i] = b[i] + 3.0f * c[i];
                                       }
                                     });
                               }),
                       0});
  }
}

}  // namespace

std::vector<Speed> MeasureHost() {
  std::vector<Speed> speeds;
  AddHostMemory(&speeds);
  Copies copies(&speeds);
  void *in = nullptr, *out = nullptr;
  if (cudaMallocHost(&in, kBytes) == cudaSuccess &&
      cudaMallocHost(&out, kBytes) == cudaSuccess) {
    copies.Add("pinned", in, out);
  }
  cudaFreeHost(in);
  cudaFreeHost(out);
  std::vector<char> plain_in(kBytes), plain_out(kBytes);
  copies.Add("pageable", plain_in.data(), plain_out.data());
  int read_only = 0, device = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported,
                         device);
  speeds.push_back({"read-only registration is supported", "(1: yes)",
                    double(read_only), 0});
  if (void* memory = MapFile(); memory != nullptr) {
    AddRegistered("shared file", cudaHostRegisterDefault, memory, true, &copies,
                  &speeds);
    mprotect(memory, kBytes, PROT_READ);
    AddRegistered("shared file, read-only", cudaHostRegisterReadOnly, memory,
                  false, &copies, &speeds);
    munmap(memory, kBytes);
  }
  return speeds;
}

}  // namespace tributary::testing
