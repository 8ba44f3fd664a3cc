// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_and_update.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/optimizer/optimizer_kinds.h"
#include "kernels/cpu/update_loops.h"
#include "kernels/cpu/vectorize.h"

#if defined(__x86_64__) && !defined(TRIBUTARY_NO_CLONES)
#define TRIBUTARY_X86_VERSIONS
#include <immintrin.h>
#endif

namespace tributary {
namespace {

constexpr int64_t kChunk = ChunkFold::kBytes / sizeof(float);

// New weights from gradient(i), for elements [first, first + n).
template <typename Rule, typename Gradient, size_t... kState>
TRIBUTARY_INLINE void UpdateWeights(std::index_sequence<kState...>,
                                    const OptimizerStep& p,
                                    const SumAndUpdate& call,
                                    float* const* states, int64_t first,
                                    int64_t n, Gradient gradient) {
  const float* const in = call.weight_in + first;
  float* const out = call.weight_out + first;
  TRIBUTARY_IVDEP
  for (int64_t i = 0; i < n; ++i) {
    out[i] =
        Rule::Update(p, gradient(i), in[i], (states[kState] + first + i)...);
  }
}

#define TRIBUTARY_VERSION portable
#define TRIBUTARY_TARGET
#define TRIBUTARY_FOLD_BYTES 0
#include "kernels/cpu/sum_and_update_loops.h"

#if defined(TRIBUTARY_X86_VERSIONS)

#define TRIBUTARY_VERSION avx2
#define TRIBUTARY_TARGET __attribute__((target("avx2,pclmul")))
#define TRIBUTARY_FOLD_BYTES 16
#define TRIBUTARY_MULTIPLY _mm_clmulepi64_si128
#include "kernels/cpu/sum_and_update_loops.h"

#define TRIBUTARY_VERSION avx2_vpclmulqdq
#define TRIBUTARY_TARGET __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define TRIBUTARY_FOLD_BYTES 32
#define TRIBUTARY_MULTIPLY _mm256_clmulepi64_epi128
#include "kernels/cpu/sum_and_update_loops.h"

#define TRIBUTARY_VERSION avx512
#define TRIBUTARY_TARGET \
  __attribute__((        \
      target("avx512f,avx512bw,avx512dq,avx512vl,pclmul,vpclmulqdq")))
#define TRIBUTARY_FOLD_BYTES 64
#define TRIBUTARY_MULTIPLY _mm512_clmulepi64_epi128
#include "kernels/cpu/sum_and_update_loops.h"

#endif

}  // namespace

std::vector<SumAndUpdateVersion> SupportedSumAndUpdateVersions() {
  std::vector<SumAndUpdateVersion> versions = {{"portable", portable::Run}};
#if defined(TRIBUTARY_X86_VERSIONS)
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul");
  const bool wide = has_avx2 && __builtin_cpu_supports("vpclmulqdq");
  const bool has_avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2) versions.push_back({"avx2", avx2::Run});
  if (wide) versions.push_back({"avx2+vpclmulqdq", avx2_vpclmulqdq::Run});
  if (wide && has_avx512) versions.push_back({"avx512", avx512::Run});
#endif
  return versions;
}

const SumAndUpdateVersion& BestSumAndUpdateVersion() {
  static const SumAndUpdateVersion best =
      SupportedSumAndUpdateVersions().back();
  return best;
}

}  // namespace tributary
