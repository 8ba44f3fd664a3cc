// SPDX-License-Identifier: Apache-2.0
// Measures how fast gradients are encoded and decoded: bytes of float32 per
// second on one thread, in runs as the client and the server use them.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/encoding/encoding.h"

namespace tributary {
namespace {

constexpr int64_t kElements = 1 << 22;
constexpr int64_t kRun = 2048;

// Encoding reads 16 MB of floats and writes the bytes. Decoding reads the bytes
// and writes to one run, which stays in the cache, as a server does.
void Measure(benchmark::State& state, const Encoding& encoding, bool encodes) {
  std::vector<float> gradient(kElements);
  for (int64_t i = 0; i < kElements; ++i) {
    gradient[static_cast<size_t>(i)] = std::sin(static_cast<float>(i));
  }
  std::string bytes(static_cast<size_t>(encoding.Bytes(kElements)), '\0');
  encoding.Encode(kElements, gradient.data(), bytes.data());
  for (auto _ : state) {
    for (int64_t i = 0; i < kElements; i += kRun) {
      char* const at = bytes.data() + encoding.Bytes(i);
      if (encodes) {
        encoding.Encode(kRun, gradient.data() + i, at);
      } else {
        encoding.Decode(kRun, at, gradient.data());
      }
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() * kElements *
                          static_cast<int64_t>(sizeof(float)));
}

void RegisterAll() {
  for (const auto& encoding : AllEncodings()) {
    for (bool encodes : {true, false}) {
      const std::string name =
          std::string(encodes ? "Encode/" : "Decode/") + encoding->name();
      benchmark::RegisterBenchmark(
          name.c_str(), [&encoding = *encoding, encodes](auto& state) {
            Measure(state, encoding, encodes);
          });
    }
  }
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tributary::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}
