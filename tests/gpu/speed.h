#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tributary {
class Ops;
}

namespace tributary::testing {

// How fast a key operation ran beside what the device can do at most, measured
// in the same run.
struct Speed {
  std::string name;
  std::string unit;  // GB/s, TFLOP/s, us
  double achieved;
  double ceiling;  // 0: none
};

// In GB/s, 0 without CUDA: what a large copy on the device reads and writes
// together, what one from pinned host memory and one to it move.
struct CopyCeilings {
  double on_device = 0;
  double to_device = 0;
  double to_host = 0;
};
CopyCeilings MeasureCopyCeilings();

// Seconds from where `ops` stands to where it stands after `calls`, by its own
// clock; below 0 where a device has none or fails. The host's clock then does.
double SecondsOnDevice(Ops& ops, const std::function<void()>& calls);

// Large arrays of numbers in [-1, 1) on a device, freed together.
class SpeedArrays {
 public:
  static constexpr int64_t kFloats = int64_t{1} << 26;  // 256 MB an array
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

// Seconds a call, after one to warm up, by the device's clock where it has one;
// very many when the device fails.
double SecondsPerCall(Ops& ops, const std::function<void()>& call);

// Measures the key operations on large arrays; `rounding`, if there, is the
// same device's with bfloat16 operands. Empty when memory is short.
std::vector<Speed> MeasureSpeeds(Ops& ops, Ops* rounding);

// The parts of that list: matrix products, convolutions, attention; what else a
// step of a model does, in GPT-2's and ResNet's shapes; and what one rank alone
// does over NCCL.
void AddProducts(Ops& ops, const SpeedArrays& a, const std::string& precision,
                 std::vector<Speed>* speeds);
void AddModelSpeeds(Ops& ops, const SpeedArrays& a, double ceiling,
                    std::vector<Speed>* speeds);
void AddNccl(Ops& ops, const SpeedArrays& a, double ceiling,
             std::vector<Speed>* speeds);

}  // namespace tributary::testing
