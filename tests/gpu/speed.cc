// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/speed.h"

#include <chrono>

#include "common/optimizer/optimizer.h"
#include "kernels/ops.h"
#include "tests/gpu/check_arrays.h"

namespace tributary::testing {
namespace {

constexpr int kRounds = 20;
constexpr int64_t kFloats = SpeedArrays::kFloats;

// Measures memory-bound operations: bytes read and written per second.
class Streams {
 public:
  Streams(Ops& ops, std::vector<Speed>* speeds) : ops_(ops), speeds_(*speeds) {}

  // arrays: how many arrays of n floats are read or written.
  void Add(const char* name, double ceiling, double arrays, int64_t n,
           const std::function<void()>& call) {
    const double bytes = arrays * static_cast<double>(n) * sizeof(float);
    speeds_.push_back(
        {name, "GB/s", bytes / SecondsPerCall(ops_, call) / 1e9, ceiling});
  }

 private:
  Ops& ops_;
  std::vector<Speed>& speeds_;
};

void AddElementwise(Ops& ops, const SpeedArrays& a, double ceiling,
                    Streams* streams) {
  const int64_t cols = 1024, rows = kFloats / cols;
  streams->Add("relu", ceiling, 2, kFloats, [&] {
    ops.Activation(ActivationKind::kRelu, kFloats, a[0], a[1]);
  });
  streams->Add("gelu (erf)", ceiling, 2, kFloats, [&] {
    ops.Activation(ActivationKind::kGeluErf, kFloats, a[0], a[1]);
  });
  streams->Add("softmax, rows of 1024", ceiling, 2, kFloats,
               [&] { ops.Softmax(rows, cols, a[0], a[1]); });
  streams->Add("layernorm, rows of 1024", ceiling, 2, kFloats, [&] {
    ops.LayerNorm(rows, cols, 1e-5f, a[0], a[2], a[3], a[1], a[4], a[5]);
  });
}

void AddReductions(Ops& ops, const SpeedArrays& a, double ceiling,
                   Streams* streams) {
  const int64_t cols = 1024, rows = kFloats / cols;
  streams->Add("column sum, 1024 columns", ceiling, 1, kFloats,
               [&] { ops.ColumnSum(rows, cols, a[0], 0, a[1]); });
  streams->Add("channel sum, 64 of 56 x 56", ceiling, 1, 300 * 64 * 56 * 56,
               [&] { ops.ChannelSum(300, 64, 56 * 56, a[0], 0, a[1]); });
  std::vector<double> squares(kFloats / 1024);
  streams->Add("sums of squares, by 1024", ceiling, 1, kFloats,
               [&] { ops.GrainSquares(kFloats, 1024, a[0], squares.data()); });
  const float* parts[] = {a[0], a[1]};
  const float weights[] = {0.5f, 0.5f};
  streams->Add("weighted sum of 2", ceiling, 3, kFloats,
               [&] { ops.WeightedSum(kFloats, 2, parts, weights, a[2]); });
}

void AddUpdates(Ops& ops, const SpeedArrays& a, double ceiling,
                Streams* streams) {
  const OptimizerOptions sgd;
  streams->Add("sgd update", ceiling, 3, kFloats, [&] {
    ops.OptimizerUpdate(Optimizer(sgd).Prepare(1, 1e-3, 1), kFloats, a[0], a[1],
                        a[1], nullptr);
  });
  OptimizerOptions adam;
  adam.kind = "adam";
  float* const states[] = {a[2], a[3]};
  streams->Add("adam update", ceiling, 7, kFloats, [&] {
    ops.OptimizerUpdate(Optimizer(adam).Prepare(1, 1e-3, 1), kFloats, a[0],
                        a[1], a[1], states);
  });
}

void AddCopies(Ops& ops, const SpeedArrays& a, const CopyCeilings& ceilings,
               Streams* streams) {
  const int64_t cols = 1024, rows = kFloats / cols;
  streams->Add("copy on the device", ceilings.on_device, 2, kFloats,
               [&] { ops.CopyMatrix(rows, cols, a[0], cols, a[1], cols); });
  std::vector<float> host(kFloats / 4);
  const auto n = static_cast<int64_t>(host.size());
  const size_t bytes = host.size() * sizeof(float);
  streams->Add("copy to the device", ceilings.to_device, 1, n,
               [&] { ops.CopyIn(a[0], host.data(), bytes); });
  streams->Add("copy to the host", ceilings.to_host, 1, n,
               [&] { ops.CopyOut(host.data(), a[0], bytes); });
  const PinnedPages pinned(ops, bytes);
  streams->Add("copy to the device, pinned", ceilings.to_device, 1, n,
               [&] { ops.CopyIn(a[0], pinned.data(), bytes); });
  streams->Add("copy to the host, pinned", ceilings.to_host, 1, n,
               [&] { ops.CopyOut(pinned.data(), a[0], bytes); });
}

}  // namespace

double SecondsPerCall(Ops& ops, const std::function<void()>& call) {
  call();
  if (!ops.Synchronize().ok()) return 1e30;
  const auto begin = std::chrono::steady_clock::now();
  const double on_device = SecondsOnDevice(ops, [&] {
    for (int round = 0; round < kRounds; ++round) call();
  });
  if (on_device < 0) {
    for (int round = 0; round < kRounds; ++round) call();
  }
  if (!ops.Synchronize().ok()) return 1e30;
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return (on_device < 0 ? seconds.count() : on_device) / kRounds;
}

SpeedArrays::SpeedArrays(Ops& ops) : ops_(ops) {
  // Arrays of zeros or ones take less power than random numbers and run faster.
  const std::vector<float> numbers = Numbers(kFloats, 1);
  for (float*& a : arrays_) {
    a = static_cast<float*>(ops.Allocate(kFloats * sizeof(float)));
    if (a != nullptr) ops.CopyIn(a, numbers.data(), kFloats * sizeof(float));
    complete_ = complete_ && a != nullptr;
  }
}

SpeedArrays::~SpeedArrays() {
  for (float* a : arrays_) {
    if (a != nullptr) ops_.Free(a);
  }
}

std::vector<Speed> MeasureSpeeds(Ops& ops, Ops* rounding) {
  std::vector<Speed> speeds;
  const CopyCeilings ceilings = MeasureCopyCeilings();
  const SpeedArrays a(ops);
  if (!a.complete()) return speeds;
  Streams streams(ops, &speeds);
  AddElementwise(ops, a, ceilings.on_device, &streams);
  AddReductions(ops, a, ceilings.on_device, &streams);
  AddUpdates(ops, a, ceilings.on_device, &streams);
  AddCopies(ops, a, ceilings, &streams);
  AddModelSpeeds(ops, a, ceilings.on_device, &speeds);
  AddNccl(ops, a, &speeds);
  AddProducts(ops, a, "", &speeds);
  if (rounding != nullptr) AddProducts(*rounding, a, ", bfloat16", &speeds);
  return speeds;
}

}  // namespace tributary::testing
