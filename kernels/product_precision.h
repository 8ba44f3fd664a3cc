#pragma once

namespace tributary {

// What the operands of matrix products (Gemm, convolutions, attention) are
// rounded to before they are multiplied. Products are added up in float32
// either way, and all else is float32.
enum class ProductPrecision { kFloat32, kBfloat16 };

}  // namespace tributary
