// SPDX-License-Identifier: Apache-2.0
// Shows how close the CPU's loops come to the memory's speed, and its matrix
// products to the processor's. Compare with BM_Triad and BM_Gemm of the same
// run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "kernels/ops.h"

namespace tributary {
namespace {

constexpr int64_t kParameters = 1 << 24;
constexpr int64_t kTile = 2048;  // tile size of the server

// An Ops array filled with a value.
class Array {
 public:
  Array(Ops& ops, int64_t n, float value)
      : ops_(ops),
        data_(static_cast<float*>(
            ops.Allocate(static_cast<size_t>(n) * sizeof(float)))) {
    ops.Fill(n, value, data_);
  }
  ~Array() { ops_.Free(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  operator float*() { return data_; }

 private:
  Ops& ops_;
  float* data_;
};

void SetTraffic(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

OptimizerOptions OptionsOf(const char* kind) {
  OptimizerOptions options;
  options.kind = kind;
  return options;
}

// a = b + q c: the limit of a loop over three arrays.
void BM_Triad(benchmark::State& state) {
  std::vector<float> a(kParameters, 0), b(kParameters, 1), c(kParameters, 2);
  float* __restrict out = a.data();
  for (auto _ : state) {
    for (int64_t i = 0; i < kParameters; ++i) out[i] = b[i] + 0.5f * c[i];
    benchmark::ClobberMemory();
  }
  SetTraffic(state, kParameters * 12);
}
BENCHMARK(BM_Triad)->Unit(benchmark::kMillisecond);

void BM_Relu(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t n = state.range(0);
  Array x(*ops, n, 1), y(*ops, n, 0);
  for (auto _ : state) {
    ops->Activation(ActivationKind::kRelu, n, x, y);
    benchmark::ClobberMemory();
  }
  SetTraffic(state, n * 8);
}
BENCHMARK(BM_Relu)->Arg(128 * 1024)->Arg(kParameters);

void BM_GeluErf(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t n = state.range(0);
  Array x(*ops, n, 1), y(*ops, n, 0);
  for (auto _ : state) {
    ops->Activation(ActivationKind::kGeluErf, n, x, y);
    benchmark::ClobberMemory();
  }
  SetTraffic(state, n * 8);
}
BENCHMARK(BM_GeluErf)->Arg(128 * 1024);

void BM_Dropout(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t rows = 128, cols = 1024;
  Array x(*ops, rows * cols, 1), y(*ops, rows * cols, 0);
  for (auto _ : state) {
    ops->Dropout(rows, cols, 0.5f, DropoutKey(), x, y);
    benchmark::ClobberMemory();
  }
  SetTraffic(state, rows * cols * 8);
}
BENCHMARK(BM_Dropout);

void BM_SoftmaxCrossEntropy(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t rows = 128, classes = state.range(0);
  Array x(*ops, rows * classes, 1), d(*ops, rows * classes, 0);
  Array loss(*ops, rows, 0);
  const std::vector<int64_t> labels(rows, 3);
  for (auto _ : state) {
    ops->CrossEntropy(rows, classes, x, labels.data(), {}, 1.0f / rows, loss,
                      nullptr, d);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * classes);
}
BENCHMARK(BM_SoftmaxCrossEntropy)->Arg(10)->Arg(1000);

void BM_LayerNorm(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t rows = 128, cols = 1024;
  Array x(*ops, rows * cols, 1), y(*ops, rows * cols, 0);
  Array gamma(*ops, cols, 1), beta(*ops, cols, 0);
  Array mean(*ops, rows, 0), rstd(*ops, rows, 0);
  for (auto _ : state) {
    ops->LayerNorm(rows, cols, 1e-5f, x, gamma, beta, y, mean, rstd);
    benchmark::ClobberMemory();
  }
  SetTraffic(state, rows * cols * 8);
}
BENCHMARK(BM_LayerNorm);

void BM_GrainSquares(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  constexpr int64_t kGrain = 4096;
  Array x(*ops, kParameters, 1);
  std::vector<double> squares(kParameters / kGrain);
  for (auto _ : state) {
    ops->GrainSquares(kParameters, kGrain, x, squares.data());
    benchmark::ClobberMemory();
  }
  SetTraffic(state, kParameters * 4);
}
BENCHMARK(BM_GrainSquares)->Unit(benchmark::kMillisecond);

// Sums the gradients of `workers` workers and updates, tile by tile in one
// pass.
void SumAndUpdate(benchmark::State& state, const char* kind) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int workers = static_cast<int>(state.range(0));
  const Optimizer optimizer(OptionsOf(kind));
  std::vector<std::unique_ptr<Array>> gradients, states;
  for (int w = 0; w < workers; ++w) {
    gradients.push_back(std::make_unique<Array>(*ops, kParameters, 1e-3f));
  }
  for (size_t s = 0; s < optimizer.state_names().size(); ++s) {
    states.push_back(std::make_unique<Array>(*ops, kParameters, 1e-3f));
  }
  Array weights(*ops, kParameters, 1);
  const std::vector<float> shares(workers, 1.0f / workers);
  const OptimizerStep step = optimizer.Prepare(2, 1e-3, 1);
  alignas(64) float sum[kTile];
  for (auto _ : state) {
    for (int64_t i = 0; i < kParameters; i += kTile) {
      const float* parts[64];
      float* tile_states[kMaxOptimizerStates];
      for (int w = 0; w < workers; ++w) parts[w] = *gradients[w] + i;
      for (size_t s = 0; s < states.size(); ++s) {
        tile_states[s] = *states[s] + i;
      }
      ops->WeightedSum(kTile, workers, parts, shares.data(), sum);
      ops->OptimizerUpdate(step, kTile, sum, weights + i, weights + i,
                           tile_states);
    }
    benchmark::ClobberMemory();
  }
  const int64_t arrays = workers + 2 + 2 * static_cast<int64_t>(states.size());
  SetTraffic(state, kParameters * 4 * arrays);
}
void BM_SumAndSgd(benchmark::State& state) { SumAndUpdate(state, "sgd"); }
void BM_SumAndAdam(benchmark::State& state) { SumAndUpdate(state, "adam"); }
BENCHMARK(BM_SumAndSgd)->Arg(2)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SumAndAdam)->Arg(2)->Arg(8)->Unit(benchmark::kMillisecond);

// A square product: the processor's limit.
void BM_Gemm(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t n = 1024;
  Array a(*ops, n * n, 1), b(*ops, n * n, 1), c(*ops, n * n, 0);
  for (auto _ : state) {
    ops->Gemm(false, false, n, n, n, 1, a, b, 0, c);
    benchmark::ClobberMemory();
  }
  state.counters["flops"] =
      benchmark::Counter(static_cast<double>(2 * n * n * n),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Gemm)->Unit(benchmark::kMillisecond);

// A linear layer at batch 128, [in] -> [out], forward and backward.
void BM_Linear(benchmark::State& state) {
  const std::unique_ptr<Ops> ops = CreateCpuOps();
  const int64_t batch = 128, in = state.range(0), out = state.range(1);
  Array x(*ops, batch * in, 1), w(*ops, out * in, 1), b(*ops, out, 1);
  Array y(*ops, batch * out, 0), dx(*ops, batch * in, 0);
  Array dw(*ops, out * in, 0), db(*ops, out, 0);
  for (auto _ : state) {
    ops->Gemm(false, true, batch, out, in, 1, x, w, 0, y);
    ops->AddBias(batch, out, b, y);
    ops->Gemm(true, false, out, in, batch, 1, y, x, 0, dw);
    ops->ColumnSum(batch, out, y, 0, db);
    ops->Gemm(false, false, batch, in, out, 1, y, w, 0, dx);
    benchmark::ClobberMemory();
  }
  state.counters["flops"] =
      benchmark::Counter(static_cast<double>(6 * batch * in * out),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Linear)
    ->Args({784, 1024})
    ->Args({1024, 1024})
    ->Args({1024, 10})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
