// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tributary {

// The precision to which operands of matrix products (Gemm, convolutions,
// attention) are rounded before they are multiplied. Sums and all other math
// are float32 in either case.
enum class ProductPrecision { kFloat32, kBfloat16 };

}  // namespace tributary
