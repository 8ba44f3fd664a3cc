// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// The speed of a key operation, and the device's maximum measured in the same
// run.
struct Speed {
  std::string name;
  std::string unit;  // GB/s, TFLOP/s, us
  double achieved;
  double ceiling;  // 0: unknown
};

// Copy rates in GB/s; 0 without CUDA. On the device, reads and writes both
// count; copies to and from the host use pinned memory.
struct CopyCeilings {
  double on_device = 0;
  double to_device = 0;
  double to_host = 0;
};
CopyCeilings MeasureCopyCeilings();

// Speeds of the host: memcpy and triad (STREAM) in its memory, by number of
// threads, and copies between its memory and the device's, for pinned, pageable
// and registered memory. Empty without CUDA.
std::vector<Speed> MeasureHost();

// Time that `calls` take on the stream of `ops`, by the device's clock;
// negative when the device has no clock or fails. Then the host's clock is
// used.
double SecondsOnDevice(Ops& ops, const std::function<void()>& calls);

// Large arrays of numbers in [-1, 1) on a device, freed together.
class SpeedArrays {
 public:
  static constexpr int64_t kFloats = int64_t{1} << 26;  // 256 MB per array
  static constexpr int kArrays = 6;

  explicit SpeedArrays(Ops& ops);
  ~SpeedArrays();
  SpeedArrays(const SpeedArrays&) = delete;
  SpeedArrays& operator=(const SpeedArrays&) = delete;

  bool complete() const { return complete_; }
  float* operator[](int i) const { return arrays_[i]; }

 private:
  Ops& ops_;
  float* arrays_[kArrays] = {};
  bool complete_ = true;
};

// Seconds per call after a warm-up call, by the device's clock if it has one;
// very large when the device fails.
double SecondsPerCall(Ops& ops, const std::function<void()>& call);

// Measures the key operations on large arrays. `rounding`, if not null, is the
// same device with bfloat16 operands. Empty when memory is insufficient.
std::vector<Speed> MeasureSpeeds(Ops& ops, Ops* rounding);

// Parts of that list: matrix products, convolutions and attention; the other
// operations of a model's step, with the shapes of GPT-2 and ResNet; and NCCL
// with one rank.
void AddProducts(Ops& ops, const SpeedArrays& a, const std::string& precision,
                 std::vector<Speed>* speeds);
void AddModelSpeeds(Ops& ops, const SpeedArrays& a, double ceiling,
                    std::vector<Speed>* speeds);
void AddNccl(Ops& ops, const SpeedArrays& a, std::vector<Speed>* speeds);

}  // namespace tributary::testing
