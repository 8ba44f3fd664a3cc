// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/correlation.h"

#include "kernels/cpu/correlation_loops.h"

namespace tributary {

const Correlations& PlainCorrelations() { return kCorrelations; }

const Correlations& BestCorrelations() {
#if defined(__x86_64__) && !defined(TRIBUTARY_NO_CLONES)
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2 && Avx2Correlations() != nullptr) return *Avx2Correlations();
#endif
  return PlainCorrelations();
}

}  // namespace tributary
