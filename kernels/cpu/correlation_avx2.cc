// SPDX-License-Identifier: Apache-2.0
// Compiled with AVX2 and FMA on x86-64 (kernels/CMakeLists.txt).
#include "kernels/cpu/correlation.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "kernels/cpu/correlation_loops.h"

namespace tributary {

const Correlations* Avx2Correlations() { return &kCorrelations; }

}  // namespace tributary
#else
namespace tributary {

const Correlations* Avx2Correlations() { return nullptr; }

}  // namespace tributary
#endif
