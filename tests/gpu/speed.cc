#include "tests/gpu/speed.h"

#include <chrono>
#include <functional>
#include <memory>

#include "kernels/ops.h"
#include "kernels/optimizer.h"

namespace tributary::testing {
namespace {

constexpr int64_t kFloats = int64_t{1} << 26;  // 256 MB an array
constexpr int kArrays = 6;
constexpr int kRounds = 20;

// Seconds a call, after one to warm up.
double Time(Ops& ops, const std::function<void()>& call) {
  call();
  if (!ops.Synchronize().ok()) return 1e30;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) call();
  if (!ops.Synchronize().ok()) return 1e30;
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return seconds.count() / kRounds;
}

// Six large arrays of ones, freed together.
class Arrays {
 public:
  explicit Arrays(Ops& ops) : ops_(ops) {
    for (float*& a : arrays_) {
      a = static_cast<float*>(ops.Allocate(kFloats * sizeof(float)));
      if (a != nullptr) ops.Fill(kFloats, 1.0f, a);
      complete_ = complete_ && a != nullptr;
    }
  }
  ~Arrays() {
    for (float* a : arrays_) {
      if (a != nullptr) ops_.Free(a);
    }
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  bool complete() const { return complete_; }
  float* operator[](int i) const { return arrays_[i]; }

 private:
  Ops& ops_;
  float* arrays_[kArrays] = {};
  bool complete_ = true;
};

void AddGemms(Ops& ops, const Arrays& a, std::vector<Speed>* speeds) {
  const auto tflops = [&](int64_t m, int64_t n, int64_t k) {
    const double seconds = Time(
        ops, [&] { ops.Gemm(false, true, m, n, k, 1, a[0], a[1], 0, a[2]); });
    return 2e-12 * static_cast<double>(m * n * k) / seconds;
  };
  const double ceiling = tflops(8192, 8192, 8192);
  const auto add = [&](const char* name, int64_t m, int64_t n, int64_t k) {
    speeds->push_back({name, "TFLOP/s", tflops(m, n, k), ceiling});
  };
  add("linear 128 x 1024 x 1024", 128, 1024, 1024);
  add("linear 4096 x 4096 x 4096", 4096, 4096, 4096);
}

}  // namespace

std::vector<Speed> MeasureSpeeds(Ops& ops) {
  std::vector<Speed> speeds;
  const Arrays a(ops);
  if (!a.complete()) return speeds;
  const double ceiling = CopyCeiling();
  const auto add = [&](const char* name, int64_t arrays,
                       const std::function<void()>& call) {
    const double bytes = static_cast<double>(arrays * kFloats) * sizeof(float);
    speeds.push_back({name, "GB/s", bytes / Time(ops, call) / 1e9, ceiling});
  };
  const int64_t cols = 1024, rows = kFloats / cols;
  add("relu", 2,
      [&] { ops.Activation(ActivationKind::kRelu, kFloats, a[0], a[1]); });
  add("gelu (erf)", 2,
      [&] { ops.Activation(ActivationKind::kGeluErf, kFloats, a[0], a[1]); });
  add("softmax, rows of 1024", 2, [&] { ops.Softmax(rows, cols, a[0], a[1]); });
  add("layernorm, rows of 1024", 2, [&] {
    ops.LayerNorm(rows, cols, 1e-5f, a[0], a[2], a[3], a[1], a[4], a[5]);
  });
  add("column sum, 1024 columns", 1,
      [&] { ops.ColumnSum(rows, cols, a[0], 0, a[1]); });
  const float* parts[] = {a[0], a[1]};
  const float weights[] = {0.5f, 0.5f};
  add("weighted sum of 2", 3,
      [&] { ops.WeightedSum(kFloats, 2, parts, weights, a[2]); });
  const OptimizerOptions sgd;
  add("sgd update", 3, [&] {
    ops.OptimizerUpdate(Optimizer(sgd).Prepare(1, 1e-3, 1), kFloats, a[0], a[1],
                        a[1], nullptr);
  });
  OptimizerOptions adam;
  adam.kind = OptimizerOptions::Kind::kAdam;
  float* const states[] = {a[2], a[3]};
  add("adam update", 7, [&] {
    ops.OptimizerUpdate(Optimizer(adam).Prepare(1, 1e-3, 1), kFloats, a[0],
                        a[1], a[1], states);
  });
  AddGemms(ops, a, &speeds);
  return speeds;
}

}  // namespace tributary::testing
